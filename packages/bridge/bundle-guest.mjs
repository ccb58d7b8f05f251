/** Bundles the guest daemon into the one file that is brought into a sandbox, after tsc has compiled it. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** The oldest Node that a sandbox may have. */
const target = "node18";

/**
 * @param {{ write: boolean }} options whether the file is written; the bundle's text is returned either way.
 * @returns {Promise<string>}
 */
export async function bundleGuest({ write }) {
  const result = await build({
    entryPoints: [fileURLToPath(new URL("dist/guest/main.js", import.meta.url))],
    outfile: fileURLToPath(new URL("dist/guest-daemon.cjs", import.meta.url)),
    bundle: true,
    // Can also be run from a pipe, and starts without Node's loader of ES modules.
    format: "cjs",
    platform: "node",
    target,
    minifySyntax: true,
    minifyWhitespace: true,
    write,
    // Nothing inside may need a package: what isn't Node's own is bundled, or this fails.
    packages: "bundle",
    logLevel: "warning",
  });
  if (write) return "";
  return result.outputFiles?.[0]?.text ?? "";
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleGuest({ write: true });
