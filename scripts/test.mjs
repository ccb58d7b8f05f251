/**
 * The checks and tests of the repository, on a machine that may have nothing but Node.
 *
 * | command | runs |
 * |---|---|
 * | `npm test` | types, lint, links and every quick test: an answer in minutes |
 * | `npm run test:all` | everything; `-- --after-npm-test` leaves out what `npm test` has run |
 * | `npm run test:changed` | the tests that a change since origin/main (or `-- <commit>`) can break, by their imports |
 * | `npm test -- core/test/plan` | only the tests below this path, whichever they are |
 *
 * A failed check doesn't keep the next one from running; only a failed build does, since everything else uses its output.
 * The last line is `N passed, N failed`: the tests, and each other check as one. Where `AMBIT_TEST_COUNTS` names a file,
 * it begins with the counts in it and leaves its own there, so that the last of several commands prints their sum.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { clusterFolder, isClusterDemanded } from "./cluster.mjs";
import { buildImage, installDocker, isDockerDemanded } from "./docker-engine.mjs";
import { all, installPackages, installSystemPackages, root, setUp } from "./setup.mjs";
import { installNode, onSupportedNode } from "./supported-node.mjs";

/** Scripts of package.json, so that each can also be run alone. */
const quickChecks = ["typecheck:tests", "lint", "check:dependencies", "check:links"];
/** In milliseconds. A hanging test must not prevent the last line; all tests take about 30 minutes on two cores. */
const checkTimeoutMs = 60 * 60_000;

/**
 * What CI's machine can guarantee, on the host and in containers with runc: there, a capability without proof is a
 * failure, not a skip. test/e2e/boundary/ordinary-user.test.ts proves an ordinary user's part of it.
 */
const mustProve = [
  "network.deny",
  "network.allow-cidr",
  "network.allow-host",
  "filesystem.read-only",
  "filesystem.workspace-only",
  "filesystem.none",
  "filesystem.host-hidden",
  "process.contained",
  "environment.named-only",
  "environment.per-tool",
  "resources.memory",
  "resources.processes",
  "resources.cpu",
  "resources.disk",
  "secrets.hidden",
  "inbound.ports",
];

/** The same for a loopback Daytona: what the kit can attack there. */
const mustProveOnDaytona = [
  "network.deny",
  "process.contained",
  "environment.named-only",
  "environment.per-tool",
  "secrets.hidden",
];

/** @typedef {{ passed: number, failed: number, failures: string[] }} Counts what the tests' reporter sends */

let passed = 0;
let failed = 0;
/** One line for each failed test, printed again at the end: the last lines may be all that a CI service shows. @type {string[]} */
const failures = [];
/** @type {string[]} */
const summary = [];

/**
 * @param {string} name
 * @param {() => Promise<boolean>} check
 */
async function record(name, check) {
  console.log(`\n── ${name}`);
  return await time(name, check);
}

/**
 * @param {string} name
 * @param {() => Promise<boolean>} check
 */
async function time(name, check) {
  const start = performance.now();
  const succeeded = await check();
  const seconds = ((performance.now() - start) / 1000).toFixed(1).padStart(6);
  summary.push(`${succeeded ? "ok    " : "FAILED"} ${seconds} s  ${name}`);
  return succeeded;
}

/**
 * @param {string} command
 * @param {object} [options]
 * @param {readonly string[]} [options.args] further arguments, which may contain spaces
 * @param {Readonly<Record<string, string>>} [options.env] added to this process's own
 * @param {(counts: Counts) => void} [options.onCounts]
 * @param {string} [options.name] keeps the output until the command ends, and prints it below this name
 */
async function run(command, { args = [], env = {}, onCounts, name } = {}) {
  const [program = "", ...own] = command.split(" ");
  const output = name === undefined ? "inherit" : "pipe";
  const child = spawn(program, [...own, ...args], {
    cwd: root,
    env: {
      ...process.env,
      ...cluster(),
      ...demands(),
      ...env,
      PATH: `${join(root, "node_modules/.bin")}${delimiter}${process.env.PATH}`,
    },
    stdio: onCounts ? ["ignore", output, output, "ipc"] : ["ignore", output, output],
    timeout: checkTimeoutMs,
    killSignal: "SIGKILL",
  });
  /** @type {Buffer[]} */
  const printed = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data) => printed.push(data));
  if (onCounts) child.on("message", onCounts);
  // "close" comes after the last message, "exit" may not.
  const [code, signal] = await once(child, "close");
  if (name !== undefined) console.log(`\n── ${name}\n${Buffer.concat(printed)}`);
  if (signal) console.error(`"${command}" was ended by ${signal}`);
  return code === 0;
}

/** Tests skip what needs a cluster where its programs aren't found; in CI they fail if it doesn't start. */
function cluster() {
  const folder = clusterFolder();
  if (folder === undefined) return {};
  return { AMBIT_CLUSTER: folder, ...(isClusterDemanded ? { AMBIT_MUST_RUN_CLUSTER: "1" } : {}) };
}

/** A value of AMBIT_MUST_PROVE that is already set wins. */
function demands() {
  if (!process.env.CI || process.getuid?.() !== 0 || process.env.AMBIT_MUST_PROVE) return {};
  const proofs = [
    ...mustProve.map((name) => `local:${name}`),
    ...mustProveOnDaytona.map((name) => `daytona:${name}`),
    ...(isDockerDemanded ? mustProve.map((name) => `docker:${name}`) : []),
  ];
  return {
    AMBIT_MUST_PROVE: proofs.join(","),
    AMBIT_MUST_RUN_LOOPBACK_DAYTONA: "1",
    ...(isDockerDemanded ? { AMBIT_MUST_RUN_DOCKER: "runc,runsc" } : {}),
  };
}

/** @param {boolean} succeeded */
function count(succeeded) {
  if (succeeded) passed += 1;
  else failed += 1;
  return succeeded;
}

/**
 * @param {"quick" | "slow" | "all"} tier
 * @param {readonly string[]} args of vitest
 */
async function runTests(tier, args = []) {
  /** @type {Counts} */
  let counts = { passed: 0, failed: 0, failures: [] };
  const exitedWell = await run("vitest run", {
    args,
    env: { AMBIT_TEST_TIER: tier },
    onCounts: (reported) => {
      counts = reported;
    },
  });
  passed += counts.passed;
  failed += counts.failed;
  failures.push(...counts.failures);
  const succeeded = exitedWell && counts.passed > 0 && counts.failed === 0;
  // A crash, or a run without a single test, is a failure that no test represents.
  if (!succeeded && counts.failed === 0) failed += 1;
  return succeeded;
}

/** Tests that use most of Node and start few processes: enough to notice what an older one lacks. */
const fastPart = [
  "core/test",
  "packages/egress/test/credentials",
  "packages/runner/test/happy-run",
  "server/test/runs/restart.test.ts",
];

const oldestNode = "the fast part on the oldest supported Node";

/** These tests also run on the current Node, so only a failure is counted. */
async function checkOldestNode() {
  const runIt = async () => {
    const node = join(await installNode("oldest"), "node");
    const command = `${node} node_modules/vitest/vitest.mjs run --reporter=dot ${fastPart.join(" ")}`;
    return await run(command, { name: oldestNode });
  };
  if (!(await time(oldestNode, runIt))) count(false);
}

/**
 * @param {string} name of a script
 * @param {readonly string[]} args
 */
const check = async (name, args = []) =>
  count(await time(name, () => run(`npm run --silent ${name} --`, { name, args })));

/** Checks that take seconds: mistakes are found before the tests start, while the sandbox image is built. */
async function runQuickChecks() {
  const names = quickChecks.values();
  const lane = async () => {
    for (const name of names) await check(name);
  };
  await Promise.all([lane(), lane()]);
}

/** Whether the tests' Docker engine can be started; resolves while other checks run. @type {Promise<boolean>} */
let docker = Promise.resolve(true);

/**
 * The engine after the other packages: apt installs for one at a time.
 * @param {boolean} withDocker
 */
async function installFromSystem(withDocker) {
  await installSystemPackages("everything");
  if (withDocker) docker = installDocker();
}

/** @param {boolean} withDocker */
async function installed(withDocker) {
  try {
    await all([installFromSystem(withDocker), installPackages("everything")]);
    return true;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return false;
  }
}

/** @param {boolean} withDocker whether the tests' Docker engine is installed meanwhile, where CI demands it */
async function prepare(withDocker) {
  return (
    count(await record("setup", () => installed(withDocker))) &&
    count(await record("build", () => run("npm run --silent build")))
  );
}

/** What a contributor waits for: nothing in it is slow by nature. */
async function runQuickTests() {
  if (!(await prepare(false))) return;
  await runQuickChecks();
  await record("tests", () => runTests("quick"));
}

/** @param {boolean} afterQuickTests whether `npm test` has run just before */
async function runEverything(afterQuickTests) {
  if (!(await prepare(isDockerDemanded))) return;
  if (isDockerDemanded) docker = docker.then(async (isInstalled) => isInstalled && (await buildImage()));
  const hasOldestNode = process.platform === "linux" && process.arch === "x64";
  // While the sandbox image is built. Each has a server of its own, and waits for pip or npm part of the time.
  const clients = Promise.all([check("check:sdk"), check("check:python"), check("check:openapi")]);
  await Promise.all([
    ...(afterQuickTests ? [] : [runQuickChecks()]),
    ...(hasOldestNode ? [checkOldestNode()] : []),
  ]);
  // Beside the tests: it mostly waits for npm.
  const packages = clients.then(() => check("check:packages"));
  if (isDockerDemanded) count(await record("waiting for Docker and the sandbox image", () => docker));
  // mmdebstrap comes with Docker's packages.
  const bare = isDockerDemanded ? check("check:bare", ["--ci"]) : undefined;
  await clients;
  await record("tests", () => runTests(afterQuickTests ? "slow" : "all"));
  await Promise.all([packages, bare]);
}

/** Builds, and sets up only where that hasn't been done. */
async function build() {
  const isSetUp = existsSync(join(root, "node_modules/.bin/vitest"));
  if (await (isSetUp ? run("npm run --silent build") : setUp("everything"))) return true;
  failed += 1;
  return false;
}

/** @param {readonly string[]} args parts of paths, and options of vitest */
async function runChosen(args) {
  if (await build()) await runTests("all", args);
}

/** @param {string | undefined} since a commit. Default: where this branch left origin/main. */
async function runChanged(since) {
  if (!(await build())) return;
  // Needs packages, which a fresh clone doesn't have.
  const { changedTests } = await import("./changed-tests.mjs");
  const { base, quick, slow } = changedTests(since);
  console.log(
    `since ${base}: ${quick.length} quick test files, and ${slow.length} slow ones that test:all runs`,
  );
  count(await record("typecheck:tests", () => run("npm run --silent typecheck:tests")));
  count(await record("lint", () => run("npm run --silent lint")));
  if (quick.length > 0) await record("tests", () => runTests("quick", quick));
}

const countsFile = process.env.AMBIT_TEST_COUNTS;

/** What the commands before this one counted. */
function takeCounts() {
  const before = countsFile === undefined ? "" : readFileSync(countsFile, "utf8");
  if (before === "") return;
  /** @type {Counts} */
  const counts = JSON.parse(before);
  passed += counts.passed;
  failed += counts.failed;
  failures.push(...counts.failures);
}

/** @param {readonly string[]} args of this program */
async function runCommand([mode, ...args]) {
  if (mode === "--all") return await runEverything(args.includes("--after-npm-test"));
  if (mode === "--changed") return await runChanged(args[0]);
  return await (mode === undefined ? runQuickTests() : runChosen([mode, ...args]));
}

await onSupportedNode(async () => {
  takeCounts();
  await runCommand(process.argv.slice(2));
  if (summary.length > 0) console.log(`\n${summary.join("\n")}\n`);
  if (countsFile !== undefined) writeFileSync(countsFile, JSON.stringify({ passed, failed, failures }));
  for (const line of failures) console.log(`failed: ${line}`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
});
