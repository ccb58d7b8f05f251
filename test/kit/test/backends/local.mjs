import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configSchema, LocalSandbox } from "@ambit/sandbox-local";

/** The local backend with a data folder of its own, which every user may pass through. */
export default function makeBackend(dataFolder = makeDataFolder()) {
  return new LocalSandbox(configSchema.parse({ dataFolder }));
}

export function makeDataFolder() {
  const folder = mkdtempSync(join(tmpdir(), "ambit-kit-local-"));
  chmodSync(folder, 0o755);
  return folder;
}
