/** Bundles the programs that run within sandboxes, after tsc has compiled them. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { insideProgram } from "../../scripts/build/bundling.mjs";

const programs = [
  { entry: "dist/inside/collect.js", bundle: "dist/collector.cjs" },
  { entry: "dist/inside/snapshot/main.js", bundle: "dist/snapshots.cjs" },
  { entry: "dist/inside/terminal.js", bundle: "dist/terminal.cjs" },
];

for (const { entry, bundle } of programs)
  await build({
    ...insideProgram,
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    outfile: fileURLToPath(new URL(bundle, import.meta.url)),
  });
