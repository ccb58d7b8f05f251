/** Bundles the guest daemon into the one file that is brought into a sandbox, after tsc has compiled it. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { insideProgram } from "../../scripts/build/bundling.mjs";

/**
 * @param {{ write: boolean }} options whether the file is written; the bundle's text is returned either way.
 * @returns {Promise<string>}
 */
export async function bundleGuest({ write }) {
  const result = await build({
    ...insideProgram,
    entryPoints: [fileURLToPath(new URL("dist/guest/main.js", import.meta.url))],
    outfile: fileURLToPath(new URL("dist/guest-daemon.cjs", import.meta.url)),
    write,
  });
  if (write) return "";
  return result.outputFiles?.[0]?.text ?? "";
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleGuest({ write: true });
