import { spawn, spawnSync } from "node:child_process";
import { chmodSync, lstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { SupervisorSettings } from "../messages.js";
import type { User } from "./users.js";

/** How the platform's own service inside is protected from the sandbox's processes. */
export interface Closure {
  /** The firewall that closes the ports; undefined if none could. */
  readonly closedBy: string | undefined;
  /** Why none could. */
  readonly whyOpen: string | undefined;
  /** Ports that a process of the sandbox could connect to. */
  openPorts(): Promise<readonly number[]>;
}

/**
 * Restricts the platform's own service to root, since it accepts requests of every process that reaches it. Then
 * checks, by connecting as a process of the sandbox would.
 *
 * @param user of such a process; undefined if processes share the bridge's user.
 */
export function closeSupervisor(
  { ports, files, scripts }: SupervisorSettings,
  user: User | undefined,
): Closure {
  for (const file of files) closeFile(file.replace(/^~(?=\/)/, homedir()));
  for (const script of scripts) emptyScript(join(process.env.TMPDIR || "/tmp", script));
  const { closedBy, whyOpen } = ports.length === 0 ? nothingToClose : close(ports, user);
  let looking: Promise<readonly number[]> | undefined;
  const look = () => {
    looking ??= ports.length === 0 ? Promise.resolve([]) : listening(ports, user);
    return looking;
  };
  // Started now, in parallel with the other preparations; a failure is reported to the first user.
  look().catch(() => undefined);
  return { closedBy, whyOpen, openPorts: look };
}

const nothingToClose = { closedBy: undefined, whyOpen: undefined };

function close(ports: readonly number[], user: User | undefined): Pick<Closure, "closedBy" | "whyOpen"> {
  if (user === undefined)
    return { closedBy: undefined, whyOpen: "the bridge isn't root, or its processes share its user" };
  const failures: string[] = [];
  for (const firewall of firewalls) {
    const failure = apply(firewall, ports);
    if (failure === undefined) return { closedBy: firewall.name, whyOpen: undefined };
    failures.push(failure);
  }
  return { closedBy: undefined, whyOpen: failures.join("; ") };
}

/** Undefined if every rule holds; else why one doesn't. */
function apply({ name, commands }: Firewall, ports: readonly number[]): string | undefined {
  for (const { program, args, input } of commands(ports)) {
    const { status, error, stderr } = spawnSync(program, args, {
      input,
      encoding: "utf8",
      timeout: ruleMs,
      env: { PATH: systemPath },
    });
    if (status === 0) continue;
    const reason = error === undefined ? stderr.trim().split("\n")[0] : error.message;
    return `${name}: ${(reason ?? "").slice(0, 200)}`;
  }
  return undefined;
}

const ruleMs = 5_000;
/** An image's `PATH` may lack the sbin folders, or begin with one that others can write to. */
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Missing paths and links are skipped. */
function closeFile(path: string): void {
  if (process.getuid?.() !== 0) return;
  try {
    const stats = lstatSync(path);
    if (stats.isDirectory()) chmodSync(path, 0o700);
    else if (stats.isFile()) chmodSync(path, 0o600);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
}

/**
 * Leaves an empty script that only root may write, and ends what already runs it. An interpreter searches the script's folder for the modules that it
 * imports, and everyone may write there.
 */
function emptyScript(path: string): void {
  if (process.getuid?.() !== 0) return;
  rmSync(path, { recursive: true, force: true });
  writeFileSync(path, "", { mode: 0o600, flag: "wx" });
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      if (args.includes(path) && Number(pid) !== process.pid) process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** Milliseconds for a connection within one machine: if it takes longer, a rule drops it. */
const connectMs = 1_500;

/** Tries every address of the sandbox, and prints the ports that accepted a connection. Switches to the user first. */
const listenersProgram = `
const net = require("node:net");
const [ports, user] = JSON.parse(process.argv[process.argv.length - 1]);
if (user !== null) {
  process.setgroups([]);
  process.setgid(user.gid);
  process.setuid(user.uid);
}
const addresses = Object.values(require("node:os").networkInterfaces()).flat();
const hosts = new Set(["127.0.0.1", "::1", ...addresses.map(({ address, scopeid, family }) =>
  scopeid > 0 && family === "IPv6" ? address + "%" + scopeid : address)]);
const open = new Set();
const attempts = [...hosts].flatMap((host) => ports.map((port) => new Promise((resolve) => {
  const socket = net.connect({ host, port });
  const end = () => { socket.destroy(); resolve(); };
  socket.setTimeout(${connectMs}, end);
  socket.once("connect", () => { open.add(port); end(); });
  socket.once("error", end);
})));
Promise.all(attempts).then(() => process.stdout.write(JSON.stringify([...open])));
`;

/** @throws Error when it couldn't be looked. */
function listening(ports: readonly number[], user: User | undefined): Promise<readonly number[]> {
  return new Promise((resolve, reject) => {
    // Starts as root, since the interpreter may be readable by root only.
    const child = spawn(process.execPath, ["-e", listenersProgram, JSON.stringify([ports, user ?? null])], {
      cwd: "/",
      stdio: ["ignore", "pipe", "pipe"],
    });
    const said: Buffer[] = [];
    const errors: Buffer[] = [];
    child.stdout.on("data", (bytes: Buffer) => said.push(bytes));
    child.stderr.on("data", (bytes: Buffer) => errors.push(bytes));
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve(JSON.parse(Buffer.concat(said).toString("utf8")));
      else
        reject(
          new Error(`its ports couldn't be listed: ${Buffer.concat(errors).toString("utf8").slice(-300)}`),
        );
    });
  });
}

/** A way to restrict TCP ports of this machine to root. */
interface Firewall {
  readonly name: string;
  /** Run in order; all must succeed. */
  commands(ports: readonly number[]): readonly FirewallCommand[];
}

interface FirewallCommand {
  readonly program: string;
  readonly args: readonly string[];
  /** Standard input. */
  readonly input?: string;
}

/**
 * In the order in which they are tried. Each refuses a packet to a port over the loopback device, for any address of
 * this machine, unless a socket of root sends it; one without an owner is refused too. Packets from
 * elsewhere, such as the platform's, aren't affected.
 */
export const firewalls: readonly Firewall[] = [
  { name: "nftables", commands: (ports) => [nft(ports, "reject with tcp reset")] },
  // Not every kernel has the module for rejecting.
  { name: "nftables (drop)", commands: (ports) => [nft(ports, "drop")] },
  {
    name: "iptables",
    commands: (ports) => ["iptables", "ip6tables"].flatMap((program) => iptables(program, ports)),
  },
];

function nft(ports: readonly number[], verdict: string): FirewallCommand {
  const rule = `oifname "lo" tcp dport { ${ports.join(", ")} }`;
  const input = `add table inet ambit_supervisor
flush table inet ambit_supervisor
add chain inet ambit_supervisor output { type filter hook output priority filter; policy accept; }
add rule inet ambit_supervisor output ${rule} meta skuid 0 accept
add rule inet ambit_supervisor output ${rule} ${verdict}
`;
  return { program: "nft", args: ["-f", "-"], input };
}

function iptables(program: string, ports: readonly number[]): readonly FirewallCommand[] {
  const match = ["-o", "lo", "-p", "tcp", "-m", "multiport", "--dports", ports.join(",")];
  const owner = ["-m", "owner", "!", "--uid-owner", "0"];
  return [
    {
      program,
      args: ["-w", "-I", "OUTPUT", "1", ...match, ...owner, "-j", "REJECT", "--reject-with", "tcp-reset"],
    },
  ];
}
