/**
 * Packs every published package, checks its manifest and types, installs all of them together into an empty folder
 * outside the repository, and uses them there. With that command line it makes a plugin of each kind. Needs a build.
 * Exits with 1 and the problems.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { root } from "../setup.mjs";
import { checkTemplates } from "./check-templates.mjs";
import { copyInstallation, installArchives } from "./install-packages.mjs";
import { pack, publishable } from "./publishable.mjs";

const folder = mkdtempSync(join(tmpdir(), "ambit-packages-"));
const ambit = join(folder, "node_modules/.bin/ambit");

/** Module resolutions that ES modules never use. */
const ignoredResolutions = ["node10", "node16-cjs"];

/** Packages that tests need, but no user. */
const testRunners = ["vitest", "vite", "rolldown"];

/** The output of a program. Throws if it fails. @param {string} program @param {readonly string[]} argv */
function output(program, argv) {
  return execFileSync(program, argv, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/**
 * The problems that publint finds in a manifest, warnings included.
 * @param {import("./publishable.mjs").Publishable} one
 */
async function manifestFaults({ folder: pkgDir }) {
  const { messages, pkg } = await publint({ pkgDir, pack: false, strict: true });
  return messages
    .filter(({ type }) => type === "error")
    .map((message) => formatMessage(message, pkg, { color: false }) ?? message.code);
}

/** The problems of a package's types for an import from an ES module. @param {string} archive */
async function typeFaults(archive) {
  const analysis = await checkPackage(createPackageFromTarballData(readFileSync(archive)));
  if (analysis.types === false) return [];
  return analysis.problems
    .filter(
      (problem) => !("resolutionKind" in problem && ignoredResolutions.includes(problem.resolutionKind)),
    )
    .map((problem) => JSON.stringify(problem));
}

/** The server starts, responds and ends. */
async function serve() {
  const server = spawn(ambit, ["serve", "--port", "0", "--console"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = once(server, "exit");
  try {
    for await (const line of createInterface(server.stderr)) {
      const { msg, url } = JSON.parse(line);
      if (msg !== "listening") continue;
      const response = await fetch(`${url}/health`);
      if (!response.ok) throw new Error(`GET /health answered ${response.status}`);
      const page = await fetch(`${url}/console/`);
      if (!page.ok) throw new Error(`GET /console/ answered ${page.status}`);
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

/** With the attacks that need a runner of their own, which the sandbox's package makes. */
function verify() {
  const report = JSON.parse(output(ambit, ["verify", "--capability", "process.contained", "--json"]));
  const [{ assurance, attacks }] = report.capabilities;
  if (assurance !== "proven") throw new Error(`process.contained was ${assurance}`);
  const killed = attacks.find(
    (/** @type {{ id: string }} */ { id }) => id === "process.contained/outlive-runner",
  );
  if (killed?.verdict !== "proven") throw new Error("no runner was killed");
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
  const archives = pack(packages, folder);
  for (const [index, one] of packages.entries()) {
    const faults = [...(await manifestFaults(one)), ...(await typeFaults(archives[index] ?? ""))];
    if (faults.length > 0) throw new Error(`${one.name}:\n${faults.join("\n")}`);
  }
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
  const byName = new Map(packages.map(({ name }, index) => [name, archives[index] ?? ""]));
  await checkTemplates({ ambit, archives: byName });
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
