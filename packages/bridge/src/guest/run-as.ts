import { spawn, spawnSync } from "node:child_process";
import type { User } from "./user.js";

/** Runs a fixed script synchronously as a user; returns whether it succeeds. `word` is its `$0`. */
export function runAs(user: User, script: string, word: string): boolean {
  const { status } = spawnSync("/bin/sh", ["-c", script, word], { ...user, stdio: "ignore" });
  return status === 0;
}

/** The same for a script that prints some of these words, one a line. None, where it can't be started. */
export function chosenAs(user: User, script: string, words: readonly string[]): readonly string[] {
  const argv = ["-c", script, "sh", ...words];
  const { stdout } = spawnSync("/bin/sh", argv, { ...user, stdio: ["ignore", "pipe", "ignore"] });
  const printed = stdout?.toString("utf8").split("\n") ?? [];
  return words.filter((word) => printed.includes(word));
}

/**
 * `runAs`, asynchronously. Settles when the script has ended, even if it failed.
 * @param onFailed called if no further process can be started.
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
