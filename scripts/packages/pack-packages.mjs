/**
 * `node scripts/packages/pack-packages.mjs <folder> [--for <kind>]`: writes the archive of every published package to a folder, for
 * `npm install` elsewhere; or only of those that a new plugin of this kind needs. Needs a build.
 */
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { pack, publishable, publishableFor, templateKinds } from "./publishable.mjs";

/** @param {string} reason @returns {never} */
function refuse(reason) {
  console.error(`pack-packages: ${reason}`);
  process.exit(2);
}

const { values, positionals } = parseArgs({ options: { for: { type: "string" } }, allowPositionals: true });
const [target = refuse("name the folder: node scripts/packages/pack-packages.mjs <folder>")] = positionals;
const kind = values.for;
if (kind !== undefined && !templateKinds().includes(kind))
  refuse(`--for takes a kind of plugin: ${templateKinds().join(", ")}`);
const folder = resolve(target);
mkdirSync(folder, { recursive: true });
const packed = pack(kind === undefined ? publishable() : publishableFor(kind), folder);
console.log(`${packed.length} packages are in ${folder}`);
