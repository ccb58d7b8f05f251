/** Bundles the gate and the relay into the files that are brought into pods, after tsc has compiled them. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { insideProgram } from "../../scripts/build/bundling.mjs";

const programs = [
  // Its proxy needs more of Node than the relay does.
  { entry: "dist/remote/gate-program.js", bundle: "dist/gate.cjs", target: "node22" },
  { entry: "dist/remote/relay-program.js", bundle: "dist/relay.cjs", target: insideProgram.target },
];

for (const { entry, bundle, target } of programs)
  await build({
    ...insideProgram,
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    outfile: fileURLToPath(new URL(bundle, import.meta.url)),
    target,
  });
