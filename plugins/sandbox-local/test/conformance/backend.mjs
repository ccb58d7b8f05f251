import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configSchema, LocalSandbox } from "@ambit/sandbox-local";

/** The local backend with a separate data folder, which every user may pass through. */
/**
 * @param {(name: string) => Promise<readonly string[]>} [lookup] in place of the host's resolver
 * @param {string[]} [trustedAuthorities] PEM files
 */
export default function makeBackend(
  dataFolder = makeDataFolder(),
  lookup = undefined,
  trustedAuthorities = [],
) {
  return new LocalSandbox(configOf(dataFolder, trustedAuthorities), lookup);
}

/**
 * @param {string} dataFolder
 * @param {string[]} [trustedAuthorities] PEM files
 */
export function configOf(dataFolder, trustedAuthorities = []) {
  return configSchema.parse({ dataFolder, trustedAuthorities });
}

export function makeDataFolder() {
  const folder = mkdtempSync(join(tmpdir(), "ambit-kit-local-"));
  chmodSync(folder, 0o755);
  return folder;
}
