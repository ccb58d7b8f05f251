/**
 * `node scripts/packages/pack-packages.mjs <folder>`: writes the archive of every published package to a folder, for `npm install`
 * elsewhere. Needs a build.
 */
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { pack, publishable } from "./publishable.mjs";

const [target] = process.argv.slice(2);
if (target === undefined) {
  console.error("name the folder: node scripts/packages/pack-packages.mjs <folder>");
  process.exit(2);
}
const folder = resolve(target);
mkdirSync(folder, { recursive: true });
const packed = pack(publishable(), folder);
console.log(`${packed.length} packages are in ${folder}`);
