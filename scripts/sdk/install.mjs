// The official SDK from PyPI, in an environment of its own: every version with the same pinned packages.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pythonEnvironment } from "../python-environment.mjs";

/** The newest one, and that of the documents which Ambit was written after. Both need the same packages. */
export const versions = ["0.125.1", "0.113.0"];

/**
 * @returns {Promise<{ python: string, packages: (version: string) => string }>} `packages`: the folder of one version
 * @throws Error with one line: what is missing here
 */
export async function installSdk() {
  const requirements = fileURLToPath(new URL("requirements.txt", import.meta.url));
  const extras = versions.map((version) => ({ target: version, requirement: `agenta==${version}` }));
  const { folder, python } = await pythonEnvironment("agenta-sdk", requirements, extras);
  return { python, packages: (version) => join(folder, version) };
}
