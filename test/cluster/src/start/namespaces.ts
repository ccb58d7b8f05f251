import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { type Link, linkPrefix, worldAddress, worldGateway } from "./addresses.js";

const execute = promisify(execFile);

/** The kernel's settings that kubelet writes, for the whole machine: it gets files of its own there. */
const kernelSettings = [
  "kernel/keys/root_maxbytes",
  "kernel/keys/root_maxkeys",
  "kernel/panic",
  "kernel/panic_on_oops",
  "vm/overcommit_memory",
  "vm/panic_on_oom",
];

/**
 * The first process of the cluster's namespaces: prints its process id on the host, and waits. `$1` is this host's end of
 * the link. Where programs write by fixed paths they get empty folders. What comes from a pod and leaves the cluster by the
 * link has the node's address, so that this host needs no route to pods. A pod's user namespace may mount /proc only where a
 * whole one is mounted already, and the settings cover parts of the first.
 */
const holder = `set -e
read -r pid rest < /proc/self/stat
mount --make-rshared /
mount -t proc proc /proc
for folder in /run /var/lib /var/log; do mount -t tmpfs tmpfs $folder; done
mkdir -p /run/settings /run/netns /run/proc
mount -t proc proc /run/proc
for setting in ${kernelSettings.join(" ")}; do
  [ -e /proc/sys/$setting ] || continue
  file=/run/settings/$(echo $setting | tr / .)
  cat /proc/sys/$setting > $file
  mount --bind $file /proc/sys/$setting
done
ip link set lo up
ip netns add world
ip link add world0 type veth peer name world1 netns world
ip addr add ${worldGateway}/30 dev world0
ip link set world0 up
ip route add default via ${worldAddress}
echo 1 > /proc/sys/net/ipv4/ip_forward
ip -n world link set lo up
ip -n world addr add ${worldAddress}/30 dev world1
ip -n world link set world1 up
ip -n world route add default via ${worldGateway}
ip -n world rule add iif world1 lookup 100
ip -n world route add local default dev lo table 100
ip netns exec world iptables -t nat -A PREROUTING -p tcp -j REDIRECT --to-ports 80
ip netns exec world iptables -t nat -A PREROUTING -p udp -j REDIRECT --to-ports 53
iptables -t nat -A POSTROUTING -o host0 -j MASQUERADE
trap '' CHLD
echo "$pid"
exec cat > /dev/null`;

/** An ordinary PATH may lack the system's own programs. */
const systemPath = `${process.env.PATH}:/usr/sbin:/sbin`;

export interface Namespaces {
  /** Of their first process, as this host sees it. */
  readonly pid: number;
  /** Ends every process in them, and with the last one their mounts, links and network namespaces. */
  end(): Promise<void>;
}

/**
 * Makes namespaces for mounts, processes and the node's network. They end with this process, even if that is killed: their
 * first process is killed then, and the kernel kills all others.
 *
 * @throws Error with what the programs said.
 */
export async function createNamespaces(link: Link): Promise<Namespaces> {
  const own = ["--mount", "--propagation", "slave", "--net", "--ipc", "--uts", "--pid"];
  const argv = ["--pdeathsig", "KILL", "unshare", ...own, "--fork", "--kill-child=SIGKILL"];
  const child = spawn("setpriv", [...argv, "/bin/sh", "-c", holder], {
    env: { ...process.env, PATH: systemPath },
    stdio: ["pipe", "pipe", "pipe"],
  });
  try {
    const pid = await firstLine(child);
    await connect(link, pid);
    return { pid, end: () => end(child) };
  } catch (error) {
    await end(child);
    throw error;
  }
}

async function firstLine(child: ChildProcess): Promise<number> {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("no pipes");
  let said = "";
  stderr.on("data", (bytes) => {
    said = `${said}${bytes}`.slice(-2000);
  });
  const line = await Promise.race([
    once(createInterface(stdout), "line").then(([text]) => Number(text)),
    once(child, "close").then(() => undefined),
  ]);
  if (line === undefined) throw new Error(`its namespaces can't be made here: ${said.trim()}`);
  return line;
}

async function connect({ name, host, neighbour, node }: Link, pid: number): Promise<void> {
  await execute("ip", ["link", "add", name, "type", "veth", "peer", "name", "host0", "netns", String(pid)]);
  for (const own of [host, neighbour])
    await execute("ip", ["addr", "add", `${own}/${linkPrefix}`, "dev", name]);
  await execute("ip", ["link", "set", name, "up"]);
  const inNode = (...argv: string[]) =>
    execute("nsenter", ["--target", String(pid), "--net", "--", "ip", ...argv]);
  await inNode("addr", "add", `${node}/${linkPrefix}`, "dev", "host0");
  await inNode("link", "set", "host0", "up");
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

/** In front of a command: runs it in the cluster's namespaces. */
export function inside(pid: number): readonly string[] {
  return ["--target", String(pid), "--mount", "--net", "--ipc", "--uts", "--pid", "--"];
}
