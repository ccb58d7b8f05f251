/**
 * Runs the README's commands where newcomers do: in fresh Debian systems with the packages nodejs, npm and git only, as
 * root and as an ordinary user without sudo, with namespaces and in plain Docker containers, small, slow and odd ones.
 * `npm run check:bare` tries all machines, and prints a table; `npm run check:bare -- docker user` those whose names have
 * both words; `--ci` four that differ most. `npm run demo` runs on the last commit, then a quick part of the tests on this
 * build. Needs root, mmdebstrap, docker.io, and a build.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
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
 * @property {boolean} [hasTests] default: true
 * @property {readonly string[]} [fix] words that the demo names to get a boundary
 * @property {boolean} [inCi]
 */

/** @satisfies {Partial<Machine>} */
const dockerUser = /** @type {const} */ ({ account: "user", docker: [] });

/** What the refusal in a container of root says to add; where Docker uses AppArmor, a third option. */
const flags = [
  ...["--cap-add", "SYS_ADMIN"],
  ...["--security-opt", "seccomp=unconfined", "--security-opt", "systempaths=unconfined"],
];

/** @type {readonly Machine[]} */
const machines = [
  { name: "bookworm user", account: "user", inCi: true },
  { name: "bookworm root, clone in its home", account: "root", inCi: true },
  { name: "trixie user", suite: "trixie", account: "user" },
  { name: "trixie root, clone in its home", suite: "trixie", account: "root" },
  {
    ...dockerUser,
    name: "docker user, 0.3 processors, 2 GB",
    docker: ["--cpus", "0.3", "--memory", "2g"],
    hasTests: false,
    inCi: true,
  },
  { name: "docker root", account: "root", docker: [], fix: flags, inCi: true },
  { ...dockerUser, name: "docker user" },
  { ...dockerUser, name: "docker user, 1 processor, 2 GB", docker: ["--cpus", "1", "--memory", "2g"] },
  {
    name: "docker root with the flags of the refusal",
    account: "root",
    docker: flags,
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

/** What the machines of one moment may fill: a gibibyte each, and the systems that they begin with. */
const memoryBytes = 6 * 1024 ** 3;

/** A file or two for each need that a machine may lack, and of what needs nothing. */
const quickPart = [
  "core/test/plan/plan-matrix",
  "packages/runner/test/happy-run",
  "packages/workspace/test/git/inside",
  "packages/workspace/test/git/script",
  "packages/workspace/test/git/signing",
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
    ...(machine.account === "homeless" ? [] : [`HOME=${homeOf(machine)}`]),
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
  // Debian's npm doesn't start without a home.
  const command = machine.account === "homeless" ? "node scripts/demo.mjs" : "npm run demo";
  // With a proxy that doesn't answer, only what was set up before can run.
  const prepared = machine.environment?.includes("PROXY") === true ? "npm run demo >/dev/null 2>&1;" : "";
  const demo = `cd ${quoted([clone])}; ${prepared} ${machine.environment ?? ":"}; ${command}`;
  // Vitest doesn't start without a home either.
  const tests = `cd /ambit; NO_COLOR=1 HOME="\${HOME:-/tmp}" /node/bin/node node_modules/vitest/vitest.mjs run ${quoted(quickPart)}`;
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
/** @typedef {{ source: string, build: string }} Shown what a machine sees of this host: a bare clone, and this build */

/** What a newcomer mustn't see: a stack, or a line of the log. */
const unfriendly = /^ +at .+:\d+:\d+\)?$|^\{"level"/m;

/** @param {Machine} machine @param {Shown} shown @param {string} system @param {readonly string[]} host */
async function runOn(machine, shown, system, host) {
  const start = Date.now();
  const volumes = [`${shown.source}:/source:ro`, `${shown.build}:/ambit`, `${nodeFolder}:/node:ro`];
  const { code, text: said } =
    machine.docker === undefined
      ? await inNamespaces(machine, shown, system)
      : await outcomeOf("docker", [
          ...[...host, "run", "--rm", "--network", "host", ...machine.docker],
          ...volumes.flatMap((volume) => ["--volume", volume]),
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
  const [, fix = ""] = /To change that: (.+)/.exec(demo) ?? [];
  if (!isGuaranteed && !(machine.fix?.every((word) => fix.includes(word)) ?? fix !== ""))
    throw fail("npm run demo didn't name the fix");
  const [, tests = "–"] = /^ +Tests +(.+) \(\d+\)$/m.exec(after ?? "") ?? [];
  if (code !== 0 || (machine.hasTests !== false && tests === "–")) throw fail(`the tests ended with ${code}`);
  return {
    name: machine.name,
    seconds: ((end - start) / 1000).toFixed(0),
    tests,
    guaranteed: isGuaranteed ? "everything the demo asks for" : "no boundary",
  };
}

/** @param {Machine} machine @param {Shown} shown @param {string} system */
async function inNamespaces(machine, { source, build }, system) {
  const { layers, target, remove } = overlayOn(system, dirname(source));
  const mounts = `mount -t overlay -o "$3" overlay "$1"
mkdir "$1/source" "$1/ambit" "$1/node"
mount --bind -o ro "$4" "$1/source"
mount --bind "$5" "$1/ambit"
mount --bind -o ro "$6" "$1/node"
${onMachine}`;
  const shell = ["sh", "-euc", mounts, "sh", target, scriptOf(machine), layers, source, build, nodeFolder];
  try {
    return await outcomeOf("unshare", ["--mount", "--pid", "--fork", "--kill-child", ...shell]);
  } finally {
    remove();
  }
}

/** Where a folder is mounted so that what is written to it changes nothing. @param {string} lower @param {string} folder */
function overlayOn(lower, folder) {
  const own = mkdtempSync(join(folder, "overlay-"));
  const [upper = "", work = "", target = ""] = ["upper", "work", "root"].map((name) => join(own, name));
  for (const path of [upper, work, target]) mkdirSync(path);
  for (const path of [own, upper]) chmodSync(path, 0o755);
  const remove = () => rmSync(own, { recursive: true, force: true });
  return { layers: `lowerdir=${lower},upperdir=${upper},workdir=${work}`, target, remove };
}

/**
 * This build with its packages for one machine, whose tests write what holds for that machine only. Mounted before the
 * engine starts, which sees no later mount of a host that shares none.
 * @param {string} folder
 */
async function showBuild(folder) {
  const { layers, target } = overlayOn(root, folder);
  await runLogged("mount", ["-t", "overlay", "-o", layers, "overlay", target], root);
  // Vitest writes here, as any user.
  const written = [".vite-temp", ".vite", ".vitest", ".vitest-cache"];
  const paths = written.map((name) => join(target, "node_modules", name));
  for (const path of paths) rmSync(path, { recursive: true, force: true });
  for (const path of paths) mkdirSync(path);
  for (const path of paths) chmodSync(path, 0o777);
  return target;
}

/** @param {readonly Row[]} rows */
function tableOf(rows) {
  const title = {
    name: "machine",
    seconds: "set-up and demo, s",
    tests: "a quick part of npm test",
    guaranteed: "guaranteed",
  };
  return [title, ...rows]
    .map(
      ({ name, seconds, tests, guaranteed }) =>
        `${name.padEnd(52)} ${seconds.padStart(18)}  ${tests.padEnd(36)} ${guaranteed}`,
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
  // Each machine writes tens of thousands of files, and none needs to outlive it.
  const isInMemory = freemem() > memoryBytes;
  if (isInMemory) await runLogged("mount", ["-t", "tmpfs", "-o", "mode=755", "tmpfs", folder], root);
  /** @type {Map<Machine, Row>} */
  const rows = new Map();
  /** @type {{ host: readonly string[], stop: () => Promise<void> } | undefined} */
  let engine;
  /** @type {Map<Machine, string>} */
  const builds = new Map();
  /** @type {string[]} */
  const failures = [];
  try {
    for (const machine of wanted) builds.set(machine, await showBuild(folder));
    const source = join(folder, "source");
    await runLogged("git", ["clone", "--quiet", "--bare", root, source], root);
    const suites = [...new Set(wanted.map(suiteOf))];
    const making = suites.map((suite) => step(`a fresh ${suite}`, () => makeSystem(suite, folder)));
    const systems = new Map((await Promise.all(making)).map((system, index) => [suites[index], system]));
    const image = wanted.find(({ docker }) => docker !== undefined);
    engine = image && (await startEngine(folder, systems.get(suiteOf(image)) ?? ""));
    const waiting = wanted.toSorted(slowestFirst).values();
    const lane = async () => {
      for (const machine of waiting) {
        const system = systems.get(suiteOf(machine)) ?? "";
        const shown = { source, build: builds.get(machine) ?? "" };
        await step(machine.name, () => runOn(machine, shown, system, engine?.host ?? [])).then(
          (row) => rows.set(machine, row),
          (error) => {
            rows.set(machine, {
              name: machine.name,
              seconds: "–",
              tests: "failed, see below",
              guaranteed: "",
            });
            failures.push(error instanceof Error ? error.message : String(error));
          },
        );
      }
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
  } finally {
    await engine?.stop();
    for (const build of builds.values()) await runLogged("umount", ["-l", build], root);
    if (isInMemory) await runLogged("umount", ["-l", folder], root);
    rmSync(folder, { recursive: true, force: true });
    if (rows.size > 0) console.log(tableOf(wanted.flatMap((machine) => rows.get(machine) ?? [])));
  }
  if (failures.length > 0) throw new Error(failures.join("\n\n"));
}

try {
  await checkBare(process.argv.slice(2));
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
