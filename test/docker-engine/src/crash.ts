import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Docker from "dockerode";
import { dockerEngine } from "./shared.js";

/**
 * Kills the daemon of the test run's engine (SIGKILL), and waits until the one that follows answers. For tests that run
 * alone, since the containers of all other tests end too.
 *
 * @returns false if the tests didn't start the engine, and so may not kill it.
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

/** The process with these arguments; others have them too, such as its parent. */
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
