import { spawn, spawnSync } from "node:child_process";
import type { User } from "../user.js";

/** Whether a fixed script, run synchronously as a user, succeeds. `word` is its `$0`. */
export function runAs(user: User, script: string, word: string): boolean {
  const { status } = spawnSync("/bin/sh", ["-c", script, word], { ...user, stdio: "ignore" });
  return status === 0;
}

/**
 * The same, asynchronously. Settles when the script has ended, also when it failed.
 * @param onFailed called where there is no room for another process.
 */
export function startAs(user: User, script: string, word: string, onFailed: () => void): Promise<void> {
  return new Promise((resolve) => {
    const child = spawn("/bin/sh", ["-c", script, word], { ...user, stdio: "ignore" });
    child.once("error", () => {
      onFailed();
      resolve();
    });
    child.once("close", () => resolve());
  });
}
