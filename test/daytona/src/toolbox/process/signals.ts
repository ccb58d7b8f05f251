import { readdirSync, readFileSync } from "node:fs";

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It has ended, or belongs to another user.
    if (!(error instanceof Error && "code" in error && (error.code === "ESRCH" || error.code === "EPERM")))
      throw error;
  }
}

/** Signals every process of the group with this leader. */
export function signalGroup(pid: number | undefined, name: NodeJS.Signals): void {
  if (pid !== undefined) signal(-pid, name);
}

/** The parent of every process. */
function parents(): Map<number, number> {
  const found = new Map<number, number>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "utf8");
      // The name, in parentheses, may contain any character. The fields after the last parenthesis have a fixed order.
      const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      found.set(Number(entry), Number(parent));
    } catch {
      // It ended between the two reads.
    }
  }
  return found;
}

/** All descendants of this process, in any group or session. */
export function descendants(root: number): number[] {
  const parentOf = parents();
  const found = [root];
  for (const pid of found)
    for (const [child, parent] of parentOf) if (parent === pid && !found.includes(child)) found.push(child);
  return found.slice(1);
}

export function signalTree(root: number, name: NodeJS.Signals): void {
  for (const pid of descendants(root)) signal(pid, name);
}
