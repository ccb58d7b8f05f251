import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Docker from "dockerode";

/** Milliseconds. It takes a third of a second on an idle machine. */
const startTimeoutMs = 60_000;

export interface Daemon {
  readonly socket: string;
  /** Resolves when all of its processes have ended. */
  stop(): Promise<void>;
}

/** Folders that dockerd and containerd write to by fixed paths: the daemon gets empty ones of its own there. */
const fixedPaths = ["/run/containerd", "/run/docker", "/etc/docker", "/opt/containerd"];

/** Without an init process nothing would wait for orphans. Debian's docker.io brings it. */
const init = ["/usr/bin/docker-init", "--"];

/**
 * Starts dockerd in a mount and a PID namespace of its own, so that its mounts and processes end with it, and so that
 * it ends with this process even if that is killed. A daemon that crashes is started again. It shares the host's network: a container with `--network host`
 * reaches what a test listens on. It sets no firewall rule and has no default bridge.
 *
 * @param name of its cgroup.
 * @param dataMb the size of what it may keep, in MiB, which is in memory then. Default: on disk, without a limit.
 * @throws Error with the end of its log, if it doesn't start.
 */
export async function startDaemon(folder: string, name: string, dataMb?: number): Promise<Daemon> {
  const path = (entry: string) => join(folder, entry);
  const socket = path("docker.sock");
  for (const entry of ["data", "exec"]) await mkdir(path(entry));
  await writeFile(path("daemon.json"), JSON.stringify(settings()));
  // Missing mount points can't be mounted over.
  for (const fixed of fixedPaths) await mkdir(fixed, { recursive: true });
  const log = openSync(path("log"), "w");
  const mounts = fixedPaths.map((fixed) => `mount -t tmpfs tmpfs ${fixed}`);
  if (dataMb !== undefined) mounts.push(`mount -t tmpfs -o size=${dataMb}m tmpfs ${path("data")}`);
  const cover = mounts.join(" && ");
  const daemon = [
    ...["dockerd", "--config-file", path("daemon.json"), "--host", `unix://${socket}`],
    ...["--data-root", path("data"), "--exec-root", path("exec"), "--pidfile", path("pid")],
    ...["--cgroup-parent", `/${name}`, "--exec-opt", "native.cgroupdriver=cgroupfs"],
    ...["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"],
  ];
  const argv = [
    ...["--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "slave"],
    ...["--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"],
    ...(existsSync(init[0] ?? "") ? init : []),
    // After a crash it is started again, as by an init system. A crashed engine leaves its socket; one that failed to
    // start doesn't.
    ...["sh", "-c", `${cover} && { "$@" || while [ -S "$0" ]; do "$@"; done; }`, socket, ...daemon],
  ];
  // An ordinary PATH may lack the system's own programs.
  const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;
  // dockerd starts itself several times for each container: at this value, Go collects no garbage in so short a life.
  const env = { ...process.env, PATH, GOGC: "400" };
  const child = spawn("setpriv", argv, { env, stdio: ["ignore", log, log] });
  closeSync(log);
  const started: Daemon = { socket, stop: () => stop(child) };
  try {
    await waitFor(socket, child);
    return started;
  } catch (error) {
    await started.stop();
    const said = readFileSync(path("log"), "utf8").trim().split("\n").slice(-5).join("\n");
    throw new Error(
      `dockerd doesn't start here: ${error instanceof Error ? error.message : error}\n${said}`,
      {
        cause: error,
      },
    );
  }
}

/** gVisor's own network stack can't start in every machine's namespaces: its sandboxes use their namespace's. */
function settings(): object {
  const runsc = ["/usr/bin/runsc", "/usr/local/bin/runsc"].find((path) => existsSync(path));
  if (runsc === undefined) return {};
  return { runtimes: { runsc: { path: runsc, runtimeArgs: ["--network=host"] } } };
}

async function waitFor(socket: string, child: ChildProcess): Promise<void> {
  const docker = new Docker({ socketPath: socket });
  let failure: unknown;
  child.on("error", (error) => {
    failure = error;
  });
  for (const deadline = Date.now() + startTimeoutMs; Date.now() < deadline; await sleep(20)) {
    if (failure !== undefined) throw failure;
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`it ended with ${child.signalCode ?? `exit code ${child.exitCode}`}`);
    if (existsSync(socket) && (await isAnswering(docker))) return;
  }
  throw new Error(`no answer within ${startTimeoutMs / 1000} s`);
}

async function isAnswering(docker: Docker): Promise<boolean> {
  try {
    await docker.ping();
    return true;
  } catch {
    return false;
  }
}

/** Its PID namespace ends with the first process in it, which ends with this one. */
async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
