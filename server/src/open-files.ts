import { readFileSync } from "node:fs";

/** Descriptors that Ambit needs to start and to confine one run. A server needs about twenty more for each run. */
const minOpenFiles = 256;

/**
 * The problem with the limit of files that this process may open, with its fix; undefined if there is none. Too few
 * cause unrelated faults later.
 *
 * @param limits `/proc/self/limits`; without it, no problem is assumed.
 */
export function tooFewOpenFiles(limits: string = ownLimits()): string | undefined {
  const soft = openFilesLimit(limits);
  if (soft === undefined || soft >= minOpenFiles) return undefined;
  return `only ${soft} files may be open at once, and Ambit needs ${minOpenFiles}: raise the limit (\`ulimit -n 4096\`; LimitNOFILE=4096 of a systemd service; --ulimit nofile=4096 of a container)`;
}

/** How many files this process may open; undefined where nothing says so. */
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
