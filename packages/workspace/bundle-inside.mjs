/** Bundles the programs that run within sandboxes, after tsc has compiled them. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** The oldest Node that a sandbox may have. */
const target = "node18";

const programs = [
  { entry: "dist/inside/main.js", bundle: "dist/collector.cjs" },
  { entry: "dist/inside/snapshot/main.js", bundle: "dist/snapshots.cjs" },
];

for (const { entry, bundle } of programs)
  await build({
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    outfile: fileURLToPath(new URL(bundle, import.meta.url)),
    bundle: true,
    format: "cjs",
    platform: "node",
    target,
    minifySyntax: true,
    minifyWhitespace: true,
    // Nothing inside may need a package: what isn't Node's own is bundled, or this fails.
    packages: "bundle",
    logLevel: "warning",
  });
