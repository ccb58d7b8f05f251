import { readdirSync, readFileSync } from "node:fs";

/** Processes of this host whose command line holds the nonce, by number; zombies have none. */
export function processesWith(nonce: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && commandLineOf(pid).includes(nonce));
}

/** Ends the kit's own leftovers, found on the host by their nonce, never by a number from inside a sandbox. */
export function endProcessesWith(nonce: string): void {
  for (const pid of processesWith(nonce)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
    }
  }
}

/** Empty for a process that has ended meanwhile. */
function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch (error) {
    if (error instanceof Error && "code" in error) return "";
    throw error;
  }
}
