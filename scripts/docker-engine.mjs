/**
 * Prepares what the tests' Docker engine needs, beside everything else that CI does before the tests: the packages,
 * then the sandbox image. An engine changes the machine that it is installed on, so elsewhere than in CI nothing is
 * installed, and the tests that need it say what is missing.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { root } from "./setup.mjs";

/** Debian's names: dockerd with containerd and runc, gVisor's runtime, and what builds the image. */
const packages = { "docker.io": "dockerd", runsc: "runsc", mmdebstrap: "mmdebstrap" };

/** In CI as root on Debian or Ubuntu the engine must run: `AMBIT_MUST_RUN_DOCKER`. */
export const isDockerDemanded =
  Boolean(process.env.CI) &&
  process.platform === "linux" &&
  process.getuid?.() === 0 &&
  existsSync("/usr/bin/apt-get");

/**
 * Starts a command, whose output is shown only if it fails.
 * @param {string} program
 * @param {readonly string[]} argv
 * @returns {Promise<boolean>} whether it succeeded.
 */
async function runQuietly(program, argv) {
  const child = spawn(program, argv, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const [said, failed, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  if (code !== 0) console.error(`"${[program, ...argv].join(" ")}" failed:\n${said}${failed}`);
  return code === 0;
}

/** Installs the packages that are missing. Resolves with whether they are there then. */
export async function installDocker() {
  const missing = Object.entries(packages).filter(
    ([, program]) => !["/usr/sbin", "/usr/bin"].some((folder) => existsSync(join(folder, program))),
  );
  if (missing.length === 0) return true;
  const names = missing.map(([name]) => name);
  const options = ["-o", "DPkg::Lock::Timeout=120"];
  const apt = ["DEBIAN_FRONTEND=noninteractive", "apt-get", ...options, "--quiet"];
  return (
    (await runQuietly("env", [...apt, "update"])) &&
    (await runQuietly("env", [...apt, "install", "--yes", "--no-install-recommends", ...names]))
  );
}

/** Builds the sandbox image, unless it is in `.cache`. Needs a build of the repository. */
export async function buildImage() {
  return await runQuietly(process.execPath, ["test/docker-engine/dist/prepare.js"]);
}
