import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as after, setTimeout as delay } from "node:timers/promises";
import { type ProcessStatus, statusOf } from "../confined/evidence.js";
import { hasEnded, hostProcess } from "../process/host-processes.js";
import { expectThat, type LocalTrial, outcomeOnHost, readOnlyBoundary, runIn, shell } from "./trial.js";

const look = (pid: number) => `kill -0 ${pid} 2>/dev/null && echo signalled
[ -e /proc/${pid}/status ] && echo seen
echo ran`;

/** Detached twice, ignoring every signal that can be ignored, and with a number that identifies them on the host. */
const daemons = (seconds: number) => `
for each in 1 2 3; do
  setsid sh -c 'trap "" TERM HUP INT; sleep ${seconds} & sleep ${seconds}' </dev/null >/dev/null 2>&1 &
done
echo ran
sleep ${seconds}`;

const contained: LocalTrial = {
  shows: ["process.contained"],
  run: async (bench) => {
    const sandbox = await bench.closed();
    const { uid } = sandbox.evidence;
    const user = process.getuid?.() === 0 && typeof uid === "number" ? { uid, gid: uid } : {};
    // Reads until its input ends: with this runner, however that ends.
    const decoy = spawn("/bin/cat", [], { stdio: ["pipe", "ignore", "ignore"], cwd: "/", env: {}, ...user });
    try {
      await once(decoy, "spawn");
      const pid = decoy.pid ?? 0;
      expectThat(
        (await outcomeOnHost(shell(look(pid)), uid)) === "signalled\nseen\nran\n",
        "the control couldn't see or signal a decoy on this host either, so nothing is proven",
      );
      // A jail has few processes, so a number this high never belongs to one of them.
      const { stdout } = await runIn(sandbox, shell(pid > 100 ? look(pid) : "echo ran; ls /proc/100/status"));
      expectThat(stdout === "ran\n", `from inside, a process of the host was ${stdout.split("\n")[0]}`);
    } finally {
      decoy.kill("SIGKILL");
    }
    const seconds = randomInt(1_000_000, 9_999_999);
    const started = await sandbox.spawn({
      argv: shell(daemons(seconds)),
      env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
      signal: bench.signal,
    });
    await started.stdout.getReader().read();
    const { length: before } = await startedOnHost(String(seconds), 7, bench.signal);
    expectThat(before >= 4, `only ${before} of the daemons came up, so nothing is proven`);
    await started.kill();
    const { length: survivors } = await onHost(String(seconds));
    expectThat(survivors === 0, `${survivors} daemons outlived their jail`);
    return {
      "process.contained": `a decoy of the same user was signalled outside and wasn't there inside; ${before} processes, detached and ignoring signals, ended with their jail`,
    };
  },
};

/**
 * Checks that a jail ends when its launcher is killed with the runner. Synchronous, so that nothing in this process can
 * end the jail meanwhile.
 */
const endsWithItsLauncher: LocalTrial = {
  shows: ["process.contained"],
  run: async (bench) => {
    const sandbox = await bench.closed();
    const seconds = randomInt(1_000_000, 9_999_999);
    const argv = shell(`echo ran; exec sleep ${seconds}`);
    const started = await sandbox.spawn({ argv, env: { PATH: "/usr/bin:/bin" }, signal: bench.signal });
    await started.stdout.getReader().read();
    const [sleeping] = await startedOnHost(String(seconds), 1, bench.signal);
    const init =
      sleeping === undefined ? undefined : aboveUntil(sleeping, (status) => status.numbers.at(-1) === 1);
    expectThat(init !== undefined, "the jail's first process wasn't found, so nothing is proven");
    const launcher = statusOf(init).parent;
    expectThat(
      launcher > 1 && launcher !== process.pid,
      "the jail's launcher wasn't found, so nothing is proven",
    );
    process.kill(launcher, "SIGKILL");
    const ended = hasEndedWithin(init, 500);
    await started.kill();
    expectThat(ended, "a jail survived its launcher");
    return { "process.contained": "a jail ended with its launcher" };
  },
};

function aboveUntil(pid: number, is: (status: ProcessStatus) => boolean): number | undefined {
  for (let current = pid; current > 1; current = statusOf(current).parent) {
    if (is(statusOf(current))) return current;
  }
  return undefined;
}

/** Blocks the event loop, so it is short. */
function hasEndedWithin(pid: number, ms: number): boolean {
  const process = hostProcess(pid);
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let waited = 0; waited < ms; waited += 2) {
    if (hasEnded(process)) return true;
    Atomics.wait(pause, 0, 0, 2);
  }
  return false;
}

/** In ms. What a shell starts may not be there yet on a busy host when the shell has written its line. */
const startTimeoutMs = 2_000;

/** Processes of this host that have the argument, as soon as there are that many; fewer if they don't appear in time. */
async function startedOnHost(
  argument: string,
  count: number,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const end = Date.now() + startTimeoutMs;
  for (;;) {
    const pids = await onHost(argument);
    if (pids.length >= count || Date.now() > end) return pids;
    await after(5, undefined, { signal });
  }
}

/** Processes of this host that have the argument. */
async function onHost(argument: string): Promise<readonly number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    // Gone since it was listed.
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "")),
  );
  return pids.map(Number).filter((_pid, index) => lines[index]?.split("\0").includes(argument));
}

export const processTrials: readonly LocalTrial[] = [contained, endsWithItsLauncher];

/** Prints the name of every attempt that succeeded, then the marker. `$1`: workspace, `$2`: home, `$3`: channel. */
const attempts = `
try() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name"; fi; }
try workspace ls "$1"
try home ls "$2"
try channel test -w "$3"
echo ran`;

/** What of a session another user of this host reaches, such as that of another session. */
export const otherUsers: LocalTrial = {
  shows: ["filesystem.host-hidden", "network.deny"],
  run: async (bench) => {
    const [sandbox, other] = await Promise.all([bench.closed(), bench.shared(readOnlyBoundary)]);
    if (process.getuid?.() !== 0) {
      const how = "its files and its channel are those of the runner's user, as all sessions are";
      return { "filesystem.host-hidden": how, "network.deny": how };
    }
    const { folder, workspace, home } = sandbox.onHost;
    const argv = [...shell(attempts), "sh", workspace, home, join(folder, "channel.sock")] as const;
    expectThat(
      (await outcomeOnHost(argv, sandbox.evidence.uid)) === "workspace\nhome\nchannel\nran\n",
      "the session's own user didn't reach its files and channel either, so nothing is proven",
    );
    const reached = (await outcomeOnHost(argv, other.evidence.uid)).trim().split("\n").slice(0, -1);
    expectThat(reached.length === 0, `another session's user reached its ${reached.join(", ")}`);
    return {
      "filesystem.host-hidden": "another session's user on this host couldn't list its workspace and home",
      "network.deny": "another session's user on this host couldn't connect to its channel",
    };
  },
};

/** Little, so that other load doesn't keep a process below it. */
const cpus = 0.1;

/** Uses a whole core until it is ended. */
const burn = shell("while :; do :; done");

export const cpuTrial: LocalTrial = {
  shows: ["resources.cpu"],
  measures: true,
  run: async (bench) => {
    const [limited, wide] = await Promise.all([
      bench.open({ resources: { cpus } }),
      bench.open({ resources: { cpus: 1024 } }),
    ]);
    const environment = { env: { PATH: "/usr/bin:/bin" }, signal: bench.signal };
    const burning = await Promise.all(
      [limited, wide].map((box) => box.spawn({ argv: burn, ...environment })),
    );
    let held = 0;
    for (let wait = 0; held === 0 && wait < 5_000 && !bench.signal.aborted; wait += 10) {
      await delay(10);
      held = await throttled(limited.groupPaths);
    }
    const control = await throttled(wide.groupPaths);
    await Promise.all(burning.map((started) => started.kill()));
    expectThat(control === 0, "the control was held back too, so nothing is proven");
    expectThat(held > 0, "the kernel never held back a process that wanted more than its share");
    return {
      "resources.cpu": `the kernel held back a process that wanted a whole core under a limit of ${cpus}, and not one under a wide limit`,
    };
  },
};

/** How often the kernel throttled these groups (`nr_throttled` of `cpu.stat`). */
async function throttled(groups: readonly string[]): Promise<number> {
  const stats = await Promise.all(
    groups.map((path) => readFile(join(path, "cpu.stat"), "latin1").catch(() => "")),
  );
  return Math.max(0, ...stats.map((text) => Number(/nr_throttled (\d+)/.exec(text)?.[1] ?? 0)));
}
