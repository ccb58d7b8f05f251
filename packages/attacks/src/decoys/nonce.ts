import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";

/** The variable that holds the decoys' secret in the runner's own environment while attacks run. */
export const canary = "KIT_CANARY";

/** Identifies one attempt, so that what a decoy sees can be distinguished from anything else on this machine. */
export function freshNonce(): string {
  return `ambit-nonce-${randomBytes(12).toString("hex")}`;
}

/** What decoys reveal. Attacks know only its form: they can't have it unless they reached a decoy. */
export function freshSecret(): string {
  return `ambit-decoy-${randomBytes(16).toString("hex")}`;
}

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
