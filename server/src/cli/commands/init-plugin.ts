import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { codeOf } from "@ambit/core/plugin";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { marks, padded } from "../display/layout.js";
import { exitCodes } from "../exit-codes.js";
import type { PluginKind } from "../plugin-kinds.js";

/** Real packages, one for each kind, and what all of them have. */
const templates = fileURLToPath(new URL("../../../templates", import.meta.url));

/** The repository's program that packs what a plugin's folder needs, since Ambit's packages are in no registry yet. */
const packer = fileURLToPath(new URL("../../../../scripts/packages/pack-packages.mjs", import.meta.url));

/** The names in a template: that of its package and plugin, and the one of what the plugin adds. */
const templateNames = /ambit-sample|sample/g;

/** npm publishes no `.gitignore`, and a `package.json` would make a folder of this package one of its own. */
const writtenAs = new Map([
  ["gitignore", ".gitignore"],
  ["manifest.json", "package.json"],
]);

/** What a build leaves in a template's folder. */
const builtFolders = ["node_modules", "dist"];

/**
 * `ambit init --plugin <kind> [folder]`: writes a plugin that builds and passes the kit, named after its folder.
 * @throws ConfigurationInvalid where the folder isn't empty, or its name can't be a package's
 */
export async function initPlugin(kind: PluginKind, folder = `my-${kind}`): Promise<number> {
  const name = basename(resolve(folder));
  if (!/^[a-z][a-z0-9-]{0,59}$/.test(name))
    throw new ConfigurationInvalid(folder, [
      `'${name}' can't be the name of a package: a small letter, then small letters, digits and "-", 60 at most`,
    ]);
  await requireEmpty(folder);
  const short = name.replace(/^ambit-(?=[a-z])/, "");
  const named = (text: string) =>
    text.replaceAll(templateNames, (found) => (found === "sample" ? short : name));
  for (const { path, text } of [...(await filesOf("common")), ...(await filesOf(kind))]) {
    const target = join(folder, writtenAs.get(path) ?? path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, named(text), { flag: "wx" });
  }
  process.stdout.write(await nextSteps(kind, folder, short));
  return exitCodes.ok;
}

/** @throws ConfigurationInvalid */
async function requireEmpty(folder: string): Promise<void> {
  try {
    const entries = await readdir(folder);
    if (entries.length === 0) return;
  } catch (cause) {
    const code = codeOf(cause);
    if (code === "ENOENT") return;
    const reason = code === "ENOTDIR" ? "is a file" : `can't be read: ${code ?? cause}`;
    throw new ConfigurationInvalid(folder, [`${reason}: name another folder`], { cause });
  }
  throw new ConfigurationInvalid(folder, ["exists and isn't empty: name another folder, or move it away"]);
}

async function filesOf(template: string) {
  const folder = join(templates, template);
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
    .filter((path) => !path.split("/").some((part) => builtFolders.includes(part)));
  return Promise.all(paths.map(async (path) => ({ path, text: await readFile(join(folder, path), "utf8") })));
}

async function nextSteps(kind: PluginKind, folder: string, short: string): Promise<string> {
  const isInRepository = await stat(packer).then(
    () => true,
    () => false,
  );
  const ambit = isInRepository
    ? `node ${fileURLToPath(new URL("../../../bin/ambit.mjs", import.meta.url))}`
    : "npx ambit";
  const install = isInRepository
    ? [`node ${packer} packages --for ${kind}`, "npm install --no-save ./packages/*.tgz"]
    : ["npm install"];
  const use =
    kind === "door"
      ? [
          `AMBIT_AUTH=none ${ambit} serve`,
          `curl -N --data @request.json http://127.0.0.1:8765/${short}/ask   in another terminal`,
        ]
      : [`${ambit} run request.json`];
  return [
    `${marks.holds} ${resolve(folder)} is written: a plugin that works, with its test.`,
    "",
    "Next:",
    `  cd ${folder}`,
    ...install.map((line) => `  ${line}`),
    `${padded("  npm test", "  npm run build".length)}  the types, and the conformance kit`,
    "  npm run build",
    ...use.map((line) => `  ${line}`),
    "",
  ].join("\n");
}
