import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalSandbox } from "./backend.js";
import { configSchema } from "./config.js";

/** The local sandbox in a separate runner, which attacks kill. Its configuration is in the query of this module's address. */
export default function localSandbox(): LocalSandbox {
  const config: unknown = JSON.parse(new URL(import.meta.url).searchParams.get("config") ?? "null");
  // Among the conformance kit's temporary files, which it removes: no later runner cleans up.
  const dataFolder = mkdtempSync(join(tmpdir(), "runner-"));
  chmodSync(dataFolder, 0o755);
  return new LocalSandbox({ ...configSchema.parse(config), dataFolder });
}
