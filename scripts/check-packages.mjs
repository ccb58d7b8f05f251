/**
 * Packs every published package, checks its manifest and types, installs all of them together into an empty folder
 * outside the repository, and uses them there. Needs a build. Exits with 1 and the problems.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { copyInstallation, installArchives } from "./install-packages.mjs";
import { pack, publishable } from "./publishable.mjs";
import { root } from "./setup.mjs";

const programs = join(root, "node_modules/.bin");
const folder = mkdtempSync(join(tmpdir(), "ambit-packages-"));
const ambit = join(folder, "node_modules/.bin/ambit");

/** Packages that tests need, but no user. */
const testRunners = ["vitest", "vite", "rolldown"];

/** The output of a program. Throws if it fails. @param {string} program @param {readonly string[]} argv */
function output(program, argv) {
  return execFileSync(program, argv, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** The server starts, responds and ends. */
async function serve() {
  const server = spawn(ambit, ["serve", "--port", "0"], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(server, "exit");
  try {
    for await (const line of createInterface(server.stderr)) {
      const { msg, url } = JSON.parse(line);
      if (msg !== "listening") continue;
      const response = await fetch(`${url}/health`);
      if (!response.ok) throw new Error(`GET /health answered ${response.status}`);
      break;
    }
  } finally {
    server.kill("SIGTERM");
  }
  const [code] = await exited;
  if (code !== 0) throw new Error(`ambit serve ended with exit code ${code}`);
}

/** @type {readonly [string, () => unknown][]} */
const uses = [
  ["ambit --version", () => output(ambit, ["--version"])],
  ["ambit doctor", () => output(ambit, ["doctor"])],
  ["ambit run", () => run()],
  ["ambit verify", verify],
  ["ambit serve", serve],
  ["ambit-sandbox-image name", () => output(join(folder, "node_modules/.bin/ambit-sandbox-image"), ["name"])],
];

/** With the control that the sandbox's own package exports, not with a bare one. */
function verify() {
  const report = JSON.parse(output(ambit, ["verify", "--capability", "environment.named-only", "--json"]));
  if (!report.control.startsWith("the same jail")) throw new Error(`the control was ${report.control}`);
}

function run() {
  const request = { harness: "demo", messages: [{ role: "user", content: "say installed" }] };
  writeFileSync(join(folder, "request.json"), JSON.stringify(request));
  const result = JSON.parse(output(ambit, ["run", "--json", "request.json"]));
  if (result.ok !== true) throw new Error(result.error);
}

async function check() {
  const packages = publishable();
  const versions = new Set(packages.map(({ version }) => version));
  if (versions.size !== 1) throw new Error(`All packages have one version, not ${[...versions].join(", ")}`);
  const archives = packages.map((one) => {
    output(join(programs, "publint"), ["run", one.folder, "--pack", "false", "--strict"]);
    const archive = pack(one, folder);
    output(join(programs, "attw"), [archive, "--profile", "esm-only", "--no-color"]);
    return archive;
  });
  installArchives(archives, folder);
  const { packages: installed } = JSON.parse(
    readFileSync(join(folder, "node_modules/.package-lock.json"), "utf8"),
  );
  for (const name of testRunners) {
    const found = Object.keys(installed).find((path) => path.endsWith(`node_modules/${name}`));
    if (found !== undefined) throw new Error(`${found} is installed with Ambit: only tests need it`);
  }
  for (const [name, use] of uses) {
    await use();
    console.log(`ok  ${name}`);
  }
  // The test of the container image installs these in it.
  if (process.env.CI) copyInstallation(folder, join(root, ".cache/container"));
  const [size] = output("du", ["-sm", "node_modules"]).split("\t");
  console.log(`${packages.length} packages, ${size} MB with their dependencies`);
}

try {
  await check();
} catch (error) {
  // A failed program's own message is in its output.
  const { stdout = "", stderr = "" } = /** @type {{ stdout?: string, stderr?: string }} */ (error);
  console.error(`${error instanceof Error ? error.message : error}\n${stdout}${stderr}`.trim());
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
