/**
 * Runs the README's commands where newcomers do: in fresh Debian systems with the packages nodejs, npm and git only, as
 * root and as an ordinary user without sudo, with namespaces and in plain Docker containers, small, slow and odd ones.
 * `npm run check:bare` tries all machines, and prints a table; `npm run check:bare -- docker user` those whose names have
 * both words; `--ci` six that differ most. `npm run demo` runs on the last commit, then a quick part of the tests on this
 * build. Needs root, mmdebstrap, docker.io, and a build.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { root } from "./setup.mjs";
import { runLogged, say, step } from "./step.mjs";

/**
 * @typedef {object} Machine
 * @property {string} name
 * @property {"bookworm" | "trixie"} [suite] default: bookworm
 * @property {"root" | "user" | "homeless"} account the last has no entry in /etc/passwd, and no HOME
 * @property {readonly string[]} [docker] a container with these options; without it, a system with all namespaces
 * @property {string} [folder] of the clone. Default: the home's `ambit`
 * @property {string} [first] commands of root before the demo
 * @property {string} [environment] what the shell sets for the demo, after the set-up
 * @property {boolean} [isGuaranteed] whether the demo runs within its boundary. Default: as root with namespaces
 * @property {boolean} [hasTests] default: true. Systems of root here have no cgroups, which root's tests need
 * @property {boolean} [inCi]
 */

/** @satisfies {Partial<Machine>} */
const dockerUser = /** @type {const} */ ({ account: "user", docker: [] });

/** @type {readonly Machine[]} */
const machines = [
  { name: "bookworm user", account: "user", inCi: true },
  { name: "bookworm root, clone in its home", account: "root", hasTests: false, inCi: true },
  { name: "trixie user", suite: "trixie", account: "user" },
  { name: "trixie root, clone in its home", suite: "trixie", account: "root", hasTests: false },
  {
    ...dockerUser,
    name: "docker user, 0.3 processors, 2 GB",
    docker: ["--cpus", "0.3", "--memory", "2g"],
    hasTests: false,
    inCi: true,
  },
  { name: "docker root", account: "root", docker: [], inCi: true },
  { ...dockerUser, name: "docker user", inCi: true },
  {
    ...dockerUser,
    name: "docker user, 1 processor, 2 GB",
    docker: ["--cpus", "1", "--memory", "2g"],
    inCi: true,
  },
  {
    name: "docker root with the flags of the refusal",
    account: "root",
    docker: [
      "--security-opt",
      "seccomp=unconfined",
      "--security-opt",
      "systempaths=unconfined",
      "--cap-add",
      "SYS_ADMIN",
    ],
    isGuaranteed: true,
  },
  { ...dockerUser, name: "docker user without Python", first: "rm -f /usr/bin/python3*" },
  { name: "root with umask 077", account: "root", environment: "umask 077", isGuaranteed: false },
  {
    name: "user with a read-only home",
    account: "user",
    folder: "/srv/clone/ambit",
    first: "chown 0 /srv/newcomer; chmod 555 /srv/newcomer",
  },
  {
    name: "user with spaces in the path, and a Turkish locale",
    account: "user",
    folder: "/srv/newcomer/a b/é",
    environment: "export LC_ALL=tr_TR.UTF-8 LANG=tr_TR.UTF-8",
  },
  {
    name: "user with a dead proxy",
    account: "user",
    environment: "export NODE_USE_ENV_PROXY=1 HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9",
  },
  { name: "user without a home", account: "homeless", folder: "/srv/clone/ambit" },
];

/** Of the Node that runs the tests: this one. */
const nodeFolder = dirname(dirname(process.execPath));

const userIds = { root: 0, user: 1000, homeless: 1234 };

/** In milliseconds. It takes about half a minute on an idle machine with two processors. */
const commandTimeoutMs = 15 * 60_000;

/** Machines side by side: each waits for npm most of the time. */
const atOnce = 3;

/** Enough of the tests to meet each need that a machine may lack. */
const quickPart = [
  "core/test/plan",
  "packages/runner/test/happy-run",
  "packages/workspace/test/git",
  "plugins/executor-code/test/executor",
  "plugins/sandbox-local/test/probe",
  "test/repository/test/needs",
];

/**
 * The new system as the root of a mount namespace, not by chroot, in which Linux refuses user namespaces.
 */
const onMachine = `
mount --rbind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --rbind /dev dev
touch etc/resolv.conf
mount --bind /etc/resolv.conf etc/resolv.conf
mkdir outside
pivot_root . outside
umount -l outside
exec sh -euc "$2"`;

/** @param {Machine} machine */
const homeOf = ({ account }) => (account === "root" ? "/root" : "/srv/newcomer");
/** @param {Machine} machine */
const cloneOf = (machine) => machine.folder ?? `${homeOf(machine)}/ambit`;

/** Words for a shell. @param {readonly string[]} words */
const quoted = (words) => words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");

/**
 * What a fresh account has of this host: its npm registry, and the authorities that a private one needs.
 * @param {Machine} machine
 */
function variablesOf(machine) {
  const registry = spawnSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).stdout.trim();
  return [
    "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    `npm_config_registry=${registry}`,
    ...(machine.account === "homeless" ? ["npm_config_cache=/tmp/npm"] : [`HOME=${homeOf(machine)}`]),
    ...(process.env.NODE_EXTRA_CA_CERTS === undefined ? [] : ["NODE_EXTRA_CA_CERTS=/authorities.crt"]),
  ];
}

/** One system for each Debian. @param {string} suite @param {string} folder */
async function makeSystem(suite, folder) {
  const system = join(folder, suite);
  await runLogged("mmdebstrap", ["--variant=minbase", "--include=nodejs,npm,git", suite, system], root);
  appendFileSync(join(system, "etc/passwd"), "newcomer:x:1000:1000::/srv/newcomer:/bin/sh\n");
  mkdirSync(join(system, "srv/newcomer"));
  spawnSync("chown", ["1000:1000", join(system, "srv/newcomer")]);
  // A registry on a private network may have an authority of its own.
  const authorities = process.env.NODE_EXTRA_CA_CERTS;
  if (authorities !== undefined)
    await runLogged("install", ["-m", "644", authorities, join(system, "authorities.crt")], root);
  return system;
}

/** What each machine runs as root: it prepares the clone, and becomes the account. @param {Machine} machine */
function scriptOf(machine) {
  const clone = cloneOf(machine);
  const id = userIds[machine.account];
  const become = [
    "setpriv",
    "--reuid",
    `${id}`,
    "--regid",
    `${id}`,
    "--clear-groups",
    "env",
    "-i",
    ...variablesOf(machine),
  ];
  // With a proxy that doesn't answer, only what was set up before can run.
  const prepared = machine.environment?.includes("PROXY") === true ? "npm run demo >/dev/null 2>&1;" : "";
  const demo = `cd ${quoted([clone])}; ${prepared} ${machine.environment ?? ":"}; npm run demo`;
  const tests = `cd /ambit; NO_COLOR=1 /node/bin/node node_modules/vitest/vitest.mjs run ${quoted(quickPart)}`;
  const commands = machine.hasTests === false ? demo : `${demo}; date +"demo ended at %s"; ${tests}`;
  const own = machine.environment?.includes("umask") === true ? machine.environment : ":";
  return `
exec 2>&1
${own}
mkdir -p ${quoted([dirname(clone)])}
git clone --quiet file:///source ${quoted([clone])}
chown -R ${id} ${quoted([dirname(clone)])}
${machine.first ?? ":"}
exec ${quoted([...become, "sh", "-euc", commands])}`;
}

/**
 * Runs a program, and returns what it said. @param {string} program @param {readonly string[]} args
 * @returns {Promise<{ code: number | null, text: string }>}
 */
async function outcomeOf(program, args) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], timeout: commandTimeoutMs });
  const [output, steps, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { code, text: `${steps}${output}` };
}

/** The engine of the tests, with an image of each system. @param {string} folder @param {string} system */
async function startEngine(folder, system) {
  const { startDaemon } = await import("../test/docker-engine/dist/daemon.js");
  mkdirSync(join(folder, "engine"));
  const daemon = await startDaemon(join(folder, "engine"), `ambit-bare-${process.pid}`);
  const host = ["--host", `unix://${daemon.socket}`];
  const made = await outcomeOf("sh", ["-c", `tar -C "$0" -c . | docker "$@" import - bare`, system, ...host]);
  if (made.code !== 0) throw new Error(`the image can't be made: ${made.text}`);
  return { host, stop: () => daemon.stop() };
}

/** @typedef {{ name: string, seconds: string, tests: string, guaranteed: string }} Row */

/** What a newcomer mustn't see: a stack, or a line of the log. */
const unfriendly = /^ +at .+:\d+:\d+\)?$|^\{"level"/m;

/** @param {Machine} machine @param {string} folder @param {string} system @param {readonly string[]} host */
async function runOn(machine, folder, system, host) {
  const start = Date.now();
  const shown = [
    ...[
      "--volume",
      `${join(folder, "source")}:/source:ro`,
      "--volume",
      `${join(folder, "tests/root")}:/ambit`,
    ],
    ...["--volume", `${nodeFolder}:/node:ro`],
  ];
  const { code, text: said } =
    machine.docker === undefined
      ? await inNamespaces(machine, folder, system)
      : await outcomeOf("docker", [
          ...[...host, "run", "--rm", "--network", "host", ...machine.docker, ...shown],
          ...["bare", "sh", "-euc", scriptOf(machine)],
        ]);
  const [demo = "", after] = said.split(/^demo ended at /m);
  const end = after === undefined ? Date.now() : Number.parseInt(after, 10) * 1000;
  const fail = (/** @type {string} */ reason) => new Error(`${machine.name}: ${reason}:\n${said}`);
  const outcomes = demo.match(/ ends {5}(end_turn|paused)/g) ?? [];
  if (outcomes.length !== 3) throw fail(`npm run demo ended with ${code}`);
  if (unfriendly.test(demo)) throw fail("npm run demo showed a stack or its log");
  const isGuaranteed = demo.includes("confined · strict");
  const expected = machine.isGuaranteed ?? (machine.account === "root" && machine.docker === undefined);
  if (isGuaranteed !== expected)
    throw fail(`npm run demo was ${isGuaranteed ? "" : "not "}within its boundary`);
  if (!isGuaranteed && !demo.includes("To change that: ")) throw fail("npm run demo named no fix");
  const [, tests = "–"] = /^ +Tests +(.+) \(\d+\)$/m.exec(after ?? "") ?? [];
  if (code !== 0 || (machine.hasTests !== false && tests === "–")) throw fail(`the tests ended with ${code}`);
  return {
    name: machine.name,
    seconds: ((end - start) / 1000).toFixed(0),
    tests,
    guaranteed: isGuaranteed ? "everything the demo asks for" : "no boundary",
  };
}

/** @param {Machine} machine @param {string} folder @param {string} system */
async function inNamespaces(machine, folder, system) {
  const own = mkdtempSync(join(folder, "machine-"));
  for (const name of ["upper", "work", "root"]) mkdirSync(join(own, name));
  chmodSync(join(own, "upper"), 0o755);
  const layers = `lowerdir=${system},upperdir=${join(own, "upper")},workdir=${join(own, "work")}`;
  const target = join(own, "root");
  const mounts = `mount -t overlay -o "$3" overlay "$1"
mkdir "$1/source" "$1/ambit" "$1/node"
mount --bind -o ro "$4/source" "$1/source"
mount --bind "$4/tests/root" "$1/ambit"
mount --bind -o ro "$5" "$1/node"
${onMachine}`;
  const shell = ["sh", "-euc", mounts, "sh", target, scriptOf(machine), layers, folder, nodeFolder];
  try {
    return await outcomeOf("unshare", ["--mount", "--pid", "--fork", "--kill-child", ...shell]);
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}

/**
 * This build with its packages, where a test may write without changing it. Mounted before the engine starts, which sees
 * no later mount of a host that shares none.
 * @param {string} folder
 */
async function showBuild(folder) {
  for (const name of ["upper", "work", "root"]) mkdirSync(join(folder, "tests", name), { recursive: true });
  const at = (/** @type {string} */ name) => join(folder, "tests", name);
  const layers = `lowerdir=${root},upperdir=${at("upper")},workdir=${at("work")}`;
  await runLogged("mount", ["-t", "overlay", "-o", layers, "overlay", at("root")], root);
  // Vitest writes here, as any user.
  const written = [".vite-temp", ".vite", ".vitest"].map((name) => join(at("root"), "node_modules", name));
  for (const path of written) mkdirSync(path, { recursive: true });
  await runLogged("chmod", ["-R", "a+rwX", ...written], root);
  return async () => await runLogged("umount", ["-l", at("root")], root);
}

/** @param {readonly Row[]} rows */
function tableOf(rows) {
  const title = {
    name: "machine",
    seconds: "demo, s",
    tests: "a quick part of npm test",
    guaranteed: "guaranteed",
  };
  return [title, ...rows]
    .map(
      ({ name, seconds, tests, guaranteed }) =>
        `${name.padEnd(52)} ${seconds.padStart(7)}  ${tests.padEnd(36)} ${guaranteed}`,
    )
    .join("\n");
}

/** @param {Machine} machine */
const suiteOf = ({ suite = "bookworm" }) => suite;

/** The one with the fewest processors runs beside all others. @param {Machine} one @param {Machine} other */
const slowestFirst = (one, other) => Number(isSlow(other)) - Number(isSlow(one));
/** @param {Machine} machine */
const isSlow = ({ docker }) => docker?.includes("0.3") === true;

/** @param {readonly string[]} args words of a machine's name, or none for all; `--ci` for those of CI */
async function checkBare(args) {
  const words = args.filter((word) => word !== "--ci");
  const wanted = machines.filter(
    ({ name, inCi }) =>
      words.every((word) => name.split(/,? /).includes(word)) && (inCi === true || !args.includes("--ci")),
  );
  if (wanted.length === 0) throw new Error(`no machine is "${args.join(" ")}"`);
  const folder = mkdtempSync(join(tmpdir(), "ambit-bare-"));
  chmodSync(folder, 0o755);
  /** @type {Row[]} */
  const rows = [];
  /** @type {{ host: readonly string[], stop: () => Promise<void> } | undefined} */
  let engine;
  let hideBuild;
  /** @type {string[]} */
  const failures = [];
  try {
    hideBuild = await showBuild(folder);
    await runLogged("git", ["clone", "--quiet", "--bare", root, join(folder, "source")], root);
    const suites = [...new Set(wanted.map(suiteOf))];
    const making = suites.map((suite) => step(`a fresh ${suite}`, () => makeSystem(suite, folder)));
    const systems = new Map((await Promise.all(making)).map((system, index) => [suites[index], system]));
    const image = wanted.find(({ docker }) => docker !== undefined);
    engine = image && (await startEngine(folder, systems.get(suiteOf(image)) ?? ""));
    const waiting = wanted.toSorted(slowestFirst).values();
    const lane = async () => {
      for (const machine of waiting) {
        const system = systems.get(suiteOf(machine)) ?? "";
        await step(machine.name, () => runOn(machine, folder, system, engine?.host ?? [])).then(
          (row) => rows.push(row),
          (error) => failures.push(error instanceof Error ? error.message : String(error)),
        );
      }
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
  } finally {
    await engine?.stop();
    await hideBuild?.();
    rmSync(folder, { recursive: true, force: true });
    if (rows.length > 0) console.log(tableOf(rows));
  }
  if (failures.length > 0) throw new Error(failures.join("\n\n"));
}

try {
  await checkBare(process.argv.slice(2));
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
