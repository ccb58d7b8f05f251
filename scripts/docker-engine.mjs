/**
 * Prepares the tests' Docker engine, after everything else that CI does before the tests: the packages, then the
 * sandbox image. An engine changes the machine that it is installed on, so outside CI nothing is installed, and tests
 * that need it report what is missing. `node scripts/docker-engine.mjs`, as root, installs it.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { root } from "./setup.mjs";

/**
 * Debian's names: dockerd with containerd and runc, gVisor's runtime, and what builds the image; what scrapes metrics; what
 * compiles the programs of `scripts/native` again, and runs those of the other machine; and a browser.
 */
const packages = {
  "docker.io": "dockerd",
  runsc: "runsc",
  mmdebstrap: "mmdebstrap",
  prometheus: "prometheus",
  gcc: "x86_64-linux-gnu-gcc",
  "gcc-aarch64-linux-gnu": "aarch64-linux-gnu-gcc",
  "qemu-user": "qemu-aarch64",
  chromium: "chromium",
};

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
 * @param {string} [cwd]
 * @returns {Promise<boolean>} whether it succeeded.
 */
async function runQuietly(program, argv, cwd = root) {
  const child = spawn(program, argv, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  const [said, failed, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  if (code !== 0) console.error(`"${[program, ...argv].join(" ")}" failed:\n${said}${failed}`);
  return code === 0;
}

/** Installs what is missing. Resolves with whether everything is there then. */
export async function installDocker() {
  return (await installMissing()) && (await fetchCompose());
}

async function installMissing() {
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

/** Compose of version 2, which Debian has since version 13: version 1 doesn't support all of `compose.yaml`. */
const compose = {
  suite: "trixie",
  package: "docker-compose",
  program: "usr/libexec/docker/cli-plugins/docker-compose",
};

/** Downloads `.cache/docker-compose` from Debian, with its signatures checked, and installs nothing. */
async function fetchCompose() {
  const target = join(root, ".cache/docker-compose");
  if (existsSync(target)) return true;
  const folder = mkdtempSync(join(tmpdir(), "ambit-compose-"));
  const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
  const source = `deb [signed-by=${keyring}] http://deb.debian.org/debian ${compose.suite} main`;
  const script = `set -e
    mkdir -p lists/partial cache/archives/partial
    echo "$1" > sources.list
    apt() {
      apt-get --quiet -o Dir::Etc::sourcelist="$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$PWD/lists" -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User=root "$@"
    }
    apt update
    apt download ${compose.package}
    dpkg-deb --extract ${compose.package}_*.deb extracted
    mkdir -p "$(dirname "$2")"
    mv extracted/${compose.program} "$2"`;
  try {
    return await runQuietly("sh", ["-c", script, "sh", source, target], folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Builds the sandbox image, unless it is in `.cache`. Needs a build of the repository. */
export async function buildImage() {
  return await runQuietly(process.execPath, ["test/docker-engine/dist/prepare.js"]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = (await installDocker()) ? 0 : 1;
