/**
 * Runs the README's first command where a newcomer has only Debian's own Node: in fresh Debian systems with the packages
 * nodejs, npm and git, as root and as an ordinary user without sudo. `npm run check:bare` tries all four;
 * `npm run check:bare -- bookworm user` one. It clones the last commit. Needs root and mmdebstrap.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { root } from "./setup.mjs";
import { runLogged, say, step } from "./step.mjs";

/** @typedef {{ suite: string, account: "root" | "user" }} Machine */

/** @type {readonly Machine[]} */
const machines = [
  { suite: "bookworm", account: "user" },
  { suite: "bookworm", account: "root" },
  { suite: "trixie", account: "user" },
  { suite: "trixie", account: "root" },
];

const userIds = { root: 0, user: 1000 };

/** In milliseconds. It takes about half a minute on an idle machine. */
const commandTimeoutMs = 10 * 60_000;

/**
 * The new system as the root of a mount namespace, not by chroot, in which Linux refuses user namespaces. The host
 * lends it its names, its authorities and its npm registry.
 */
const onMachine = `
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --rbind /dev dev
touch etc/resolv.conf
mount --bind /etc/resolv.conf etc/resolv.conf
mkdir outside
pivot_root . outside
umount -l outside
cd /srv/newcomer/ambit
exec setpriv --reuid "$2" --regid "$2" --clear-groups env -i HOME=/srv/newcomer PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
  npm_config_registry="$3" $4 npm run demo`;

/**
 * @param {Machine} machine
 * @param {string} folder
 */
async function prepare({ suite, account }, folder) {
  const system = join(folder, "root");
  await runLogged("mmdebstrap", ["--variant=minbase", "--include=nodejs,npm,git", suite, system], root);
  mkdirSync(join(system, "srv/newcomer"), { recursive: true });
  await runLogged("git", ["clone", "--quiet", root, join(system, "srv/newcomer/ambit")], root);
  await runLogged("chown", ["-R", `${userIds[account]}`, join(system, "srv/newcomer")], root);
  // A registry on a private network may have an authority of its own.
  const authorities = process.env.NODE_EXTRA_CA_CERTS;
  if (authorities === undefined) return { system, environment: "" };
  await runLogged("install", ["-m", "644", authorities, join(system, "authorities.crt")], root);
  return { system, environment: "NODE_EXTRA_CA_CERTS=/authorities.crt" };
}

/**
 * @param {Machine} machine
 * @param {string} folder
 */
async function demonstrate(machine, folder) {
  const { system, environment } = await prepare(machine, folder);
  const registry = spawnSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).stdout.trim();
  const shell = ["sh", "-euc", onMachine, "sh", system, `${userIds[machine.account]}`, registry, environment];
  const options = ["--mount", "--pid", "--fork", "--kill-child"];
  const child = spawn("unshare", [...options, ...shell], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: commandTimeoutMs,
  });
  const [shown, steps, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  const outcomes = shown.match(/ ends {5}(end_turn|paused)/g) ?? [];
  if (code !== 0 || outcomes.length !== 3)
    throw new Error(`npm run demo ended with ${code}:\n${steps}${shown}`);
  // Only root can install the sandbox's programs there; without them the demo says so.
  const expected = machine.account === "root" ? "confined · strict" : "Without a boundary";
  if (!shown.includes(expected)) throw new Error(`npm run demo didn't say "${expected}":\n${steps}${shown}`);
}

/** @param {readonly string[]} chosen parts of a machine, or none for all */
async function checkBare(chosen) {
  const wanted = machines.filter((one) => chosen.every((part) => part === one.suite || part === one.account));
  if (wanted.length === 0) throw new Error(`no machine is "${chosen.join(" ")}"`);
  for (const machine of wanted) {
    const folder = mkdtempSync(join(tmpdir(), "ambit-bare-"));
    try {
      await step(`npm run demo on ${machine.suite} as ${machine.account}`, () =>
        demonstrate(machine, folder),
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

try {
  await checkBare(process.argv.slice(2));
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
