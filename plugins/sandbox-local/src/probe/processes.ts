import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as after } from "node:timers/promises";
import { type ProcessStatus, statusOf } from "../confined/evidence.js";
import { hasEnded, hostProcess } from "../confined/launch/host-process.js";
import { outcomeOnHost } from "./on-host.js";
import { expectThat, type LocalTrial, runIn, shell } from "./trial.js";

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
    const found = await onHost(argument);
    if (found.length >= count || Date.now() > end) return found;
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
