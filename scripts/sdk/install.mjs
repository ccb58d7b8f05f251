// The official SDK from PyPI, in an environment of its own: every version with the same pinned packages.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const requirements = fileURLToPath(new URL("requirements.txt", import.meta.url));

/** The newest one, and that of the documents which Ambit was written after. Both need the same packages. */
export const versions = ["0.125.1", "0.113.0"];

/**
 * @returns {Promise<{ python: string, packages: (version: string) => string }>} `packages`: the folder of one version
 * @throws Error with one line: what is missing here
 */
export async function installSdk() {
  const digest = createHash("sha256").update(readFileSync(requirements)).update(versions.join());
  const folder = join(root, ".cache", `agenta-sdk-${digest.digest("hex").slice(0, 16)}`);
  const python = join(folder, "venv/bin/python");
  const packages = (/** @type {string} */ version) => join(folder, version);
  const complete = join(folder, "complete");
  if (existsSync(complete)) return { python, packages };
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const options = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "2"];
  try {
    await run("python3", ["-m", "venv", join(folder, "venv")]);
    await run(python, ["-m", "pip", "install", ...options, "--no-deps", "--requirement", requirements]);
    for (const version of versions) {
      const target = ["--no-deps", "--target", packages(version), `agenta==${version}`];
      await run(python, ["-m", "pip", "install", ...options, ...target]);
    }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(lastLine(error), { cause: error });
  }
  writeFileSync(complete, "");
  return { python, packages };
}

/** @param {unknown} error */
function lastLine(error) {
  const text =
    error instanceof Error && "stderr" in error
      ? String(error.stderr).trim() || error.message
      : String(error);
  return text.split("\n").at(-1) ?? text;
}
