/** Bundles the gate and the relay into the files that are brought into pods, after tsc has compiled them. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/**
 * zod's messages in fifty languages, of which it uses the English ones: imported by themselves.
 * @type {import("esbuild").Plugin}
 */
const englishOnly = {
  name: "english-only",
  setup({ onLoad }) {
    onLoad({ filter: /\/node_modules\/zod\/v4\/locales\/index\.js$/ }, () => ({ contents: "export {};" }));
  },
};

const programs = [
  { entry: "dist/remote/gate-main.js", bundle: "dist/gate.cjs", target: "node22" },
  // The oldest Node that a sandbox may have.
  { entry: "dist/remote/relay-main.js", bundle: "dist/relay.cjs", target: "node18" },
];

for (const { entry, bundle, target } of programs)
  await build({
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    outfile: fileURLToPath(new URL(bundle, import.meta.url)),
    bundle: true,
    // Runs from a pipe, and starts without Node's loader of ES modules.
    format: "cjs",
    platform: "node",
    target,
    minifySyntax: true,
    minifyWhitespace: true,
    // Nothing inside may need a package: what isn't Node's own is bundled, or this fails.
    packages: "bundle",
    plugins: [englishOnly],
    logLevel: "warning",
  });
