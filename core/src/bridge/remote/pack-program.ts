import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path/posix";
import { fileURLToPath } from "node:url";

/** The compiled half inside, with what it shares with this one. */
const root = fileURLToPath(new URL("../..", import.meta.url));
const entry = "bridge/inside/main.js";

let packed: Promise<string> | undefined;

/** The half inside as one file without dependencies, which unpacks itself beside it. Made once. */
export function packedProgram(): Promise<string> {
  packed ??= pack();
  return packed;
}

async function pack(): Promise<string> {
  const files: Record<string, string> = {};
  const open = [entry];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const source = await readFile(join(root, path), "utf8");
    files[path] = source;
    for (const name of importsOf(source)) {
      const imported = join(dirname(path), name);
      if (relative("", imported).startsWith("..")) throw new Error(`${path} imports ${name}`);
      if (!(imported in files)) open.push(imported);
    }
  }
  const content = JSON.stringify(files);
  const version = createHash("sha256").update(content).digest("hex").slice(0, 16);
  return `// Ambit's bridge: unpacks itself once, then runs.
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
const files = ${content};
const folder = join(dirname(process.argv[1]), "bridge-${version}");
if (!existsSync(folder)) {
  const draft = folder + "-" + process.pid;
  for (const [path, source] of Object.entries(files)) {
    mkdirSync(dirname(join(draft, path)), { recursive: true });
    writeFileSync(join(draft, path), source);
  }
  writeFileSync(join(draft, "package.json"), '{"type":"module"}');
  renameSync(draft, folder);
}
await import(join(folder, ${JSON.stringify(entry)}));
`;
}

/** Of our own compiled files only: nothing inside may need a package. */
function importsOf(source: string): readonly string[] {
  const names = [...source.matchAll(/^(?:import|export)\b[^;]*?\bfrom "([^"]+)";/gms)].map(
    ([, name]) => name ?? "",
  );
  const foreign = names.find((name) => !name.startsWith("node:") && !name.startsWith("."));
  if (foreign !== undefined) throw new Error(`The half inside imports ${foreign}, which isn't there`);
  return names.filter((name) => name.startsWith("."));
}
