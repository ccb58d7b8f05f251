import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Docker from "dockerode";
import { dockerEngine } from "./shared.js";

/**
 * Kills the daemon of the test run's engine (SIGKILL), and waits until the one that follows answers. For tests that run
 * alone: every other's containers end too.
 *
 * @returns false where the engine was found: it isn't the tests' to kill.
 */
export async function crashEngine(): Promise<boolean> {
  const { socket } = dockerEngine();
  const pid = daemonOf(join(dirname(socket), "data"));
  if (pid === undefined) return false;
  process.kill(pid, "SIGKILL");
  const docker = new Docker({ socketPath: socket });
  for (;;) {
    await sleep(50);
    const isAnswering = await docker.ping().then(
      () => true,
      () => false,
    );
    if (isAnswering) return true;
  }
}

/** The process by its own arguments: others have them too, such as what started it. */
function daemonOf(dataFolder: string): number | undefined {
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const [program = "", ...args] = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
      if (/(^|\/)dockerd$/.test(program) && args.includes(dataFolder)) return Number(name);
    } catch {
      // It ended meanwhile.
    }
  }
  return undefined;
}
