import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { outcomeOnHost } from "./on-host.js";
import { expectThat, runIn, shell, type Trial } from "./trial.js";

const look = (pid: number) => `kill -0 ${pid} 2>/dev/null && echo signalled
[ -e /proc/${pid}/status ] && echo seen
echo ran`;

/** Detached twice, deaf to every signal that can be ignored, and with a number that names them on the host. */
const daemons = (seconds: number) => `
for each in 1 2 3; do
  setsid sh -c 'trap "" TERM HUP INT; sleep ${seconds} & sleep ${seconds}' </dev/null >/dev/null 2>&1 &
done
sleep 0.1
echo ran
sleep ${seconds}`;

const contained: Trial = {
  shows: ["process.contained"],
  run: async (bench) => {
    const sandbox = await bench.open({ network: { mode: "off", rules: [] } });
    const { uid } = sandbox.evidence;
    const user = process.getuid?.() === 0 && typeof uid === "number" ? { uid, gid: uid } : {};
    const decoy = spawn("/bin/sleep", ["60"], { stdio: "ignore", cwd: "/", env: {}, ...user });
    try {
      await once(decoy, "spawn");
      const pid = decoy.pid ?? 0;
      expectThat(
        (await outcomeOnHost(shell(look(pid)), uid)) === "signalled\nseen\nran\n",
        "the control couldn't see or signal a decoy on this host either, so nothing is shown",
      );
      // A jail has few processes: a number this high is never one of its own.
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
    const before = await countOnHost(String(seconds));
    expectThat(before >= 4, `only ${before} of the daemons came up, so nothing is shown`);
    await started.kill();
    const after = await countOnHost(String(seconds));
    expectThat(after === 0, `${after} daemons outlived their jail`);
    return {
      "process.contained": `a decoy of the same user was signalled outside and wasn't there inside; ${before} processes, detached and deaf to signals, were gone with their jail`,
    };
  },
};

async function countOnHost(argument: string): Promise<number> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    // Gone since it was listed: not there.
    pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "")),
  );
  return lines.filter((line) => line.split("\0").includes(argument)).length;
}

export const processTrials: readonly Trial[] = [contained];
