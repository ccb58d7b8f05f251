/** Bundles the program that reads a workspace from within its sandbox, after tsc has compiled it. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** The oldest Node that a sandbox may have. */
const target = "node18";

await build({
  entryPoints: [fileURLToPath(new URL("dist/inside/main.js", import.meta.url))],
  outfile: fileURLToPath(new URL("dist/collector.cjs", import.meta.url)),
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
