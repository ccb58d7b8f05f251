// A Python environment with pinned packages, in .cache, made once.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * @param {string} name of its folder
 * @param {string} requirements file with every package and its version
 * @param {readonly { target: string, requirement: string }[]} extras further packages, each in a folder of its own beside
 * @returns {Promise<{ folder: string, python: string }>}
 * @throws Error with one line: what is missing here
 */
export async function pythonEnvironment(name, requirements, extras = []) {
  const digest = createHash("sha256").update(readFileSync(requirements)).update(JSON.stringify(extras));
  const folder = join(root, ".cache", `${name}-${digest.digest("hex").slice(0, 16)}`);
  const python = join(folder, "venv/bin/python");
  const complete = join(folder, "complete");
  if (existsSync(complete)) return { folder, python };
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"];
  const options = ["--retries", "2", "--no-deps"];
  try {
    await run("python3", ["-m", "venv", join(folder, "venv")]);
    await run(python, [...install, ...options, "--requirement", requirements]);
    for (const { target, requirement } of extras)
      await run(python, [...install, ...options, "--target", join(folder, target), requirement]);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(lastLine(error), { cause: error });
  }
  writeFileSync(complete, "");
  return { folder, python };
}

/** @param {unknown} error */
function lastLine(error) {
  const text =
    error instanceof Error && "stderr" in error
      ? String(error.stderr).trim() || error.message
      : String(error);
  return text.split("\n").at(-1) ?? text;
}
