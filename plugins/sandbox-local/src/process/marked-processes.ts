import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { signal } from "./signal.js";

/** Names the process's origin in its environment, which its descendants inherit also when they detach. */
export const markerVariable = "AMBIT_SANDBOX";

/** A process's mark: the runner's key, the sandbox's id, and a number for each spawn. */
export function markOf(runnerKey: string, sandboxId = "", spawned?: number): string {
  return `${runnerKey}/${sandboxId}${sandboxId === "" ? "" : "/"}${spawned === undefined ? "" : `${spawned}/`}`;
}

/**
 * Kills every process that carries a mark beginning so, until none is found. A process that drops its environment
 * and its group escapes this: without a pid namespace nothing can promise more, and nothing is claimed.
 *
 * @param group also the processes of this process group.
 * @returns how many were killed.
 */
export async function killMarked(mark: string, group?: number): Promise<number> {
  const killed = new Set<number>();
  for (let round = 0; round < 50; round++) {
    const found = findMarked(mark, group);
    if (found.length === 0) break;
    for (const pid of found) {
      killed.add(pid);
      signal(pid, "SIGKILL");
    }
    await delay(10);
  }
  return killed.size;
}

function findMarked(mark: string, group: number | undefined): readonly number[] {
  if (process.platform !== "linux") return [];
  const sought = `${markerVariable}=${mark}`;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && (inGroup(pid, group) || isMarked(pid, sought)));
}

function isMarked(pid: number, sought: string): boolean {
  const environment = readProcess(pid, "environ");
  return environment.startsWith(sought) || environment.includes(`\0${sought}`);
}

function inGroup(pid: number, group: number | undefined): boolean {
  if (group === undefined) return false;
  const stat = readProcess(pid, "stat");
  // The second field is the program's name in parentheses, and may hold anything.
  const [state, , processGroup] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(processGroup) === group && state !== "Z";
}

/** Empty for a process that is gone, or another user's: neither is ours. */
function readProcess(pid: number, file: "environ" | "stat"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch (error) {
    if (error instanceof Error && "code" in error) return "";
    throw error;
  }
}
