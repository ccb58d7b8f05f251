/**
 * Bundles the programs of a loopback's runner and of the daemon in its sandboxes, which tests start hundreds of times: each
 * as one file, which Node starts in less than half the time. Run after tsc.
 */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { nodeProgram } from "../../scripts/build/bundling.mjs";

const dist = fileURLToPath(new URL("dist/", import.meta.url));

await Promise.all([
  build({
    ...nodeProgram,
    entryPoints: [`${dist}runner/main.js`],
    outfile: `${dist}runner/bundle/main.js`,
    format: "esm",
  }),
  // Without Node's loader of ES modules, which takes longer than the daemon's own code.
  build({
    ...nodeProgram,
    entryPoints: [`${dist}toolbox/main.js`],
    outfile: `${dist}toolbox/bundle/main.cjs`,
    format: "cjs",
  }),
]);
