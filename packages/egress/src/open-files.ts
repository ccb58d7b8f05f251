import { readFileSync } from "node:fs";

/**
 * How many files this process may open; undefined where nothing says so. Without a limit, the largest integer.
 *
 * @param limits the text of `/proc/self/limits`
 */
export function openFilesLimit(limits: string = ownLimits()): number | undefined {
  const soft = /^Max open files +(\d+|unlimited)/m.exec(limits)?.[1];
  if (soft === "unlimited") return Number.MAX_SAFE_INTEGER;
  return soft === undefined ? undefined : Number(soft);
}

function ownLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "latin1");
  } catch {
    // Not Linux.
    return "";
  }
}
