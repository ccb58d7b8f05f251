import { readFileSync } from "node:fs";

/** Descriptors that Ambit needs to start and to confine one run. A server needs about twenty more for each run. */
export const minOpenFiles = 256;

/**
 * The problem with the limit of files that this process may open, with its fix; undefined if there is none. Too few
 * cause unrelated faults later.
 *
 * @param limits `/proc/self/limits`; without it, no problem is assumed.
 */
export function tooFewOpenFiles(limits: string = ownLimits()): string | undefined {
  const soft = /^Max open files +(\d+)/m.exec(limits)?.[1];
  if (soft === undefined || Number(soft) >= minOpenFiles) return undefined;
  return `only ${soft} files may be open at once, and Ambit needs ${minOpenFiles}: raise the limit (\`ulimit -n 4096\`; LimitNOFILE=4096 of a systemd service; --ulimit nofile=4096 of a container)`;
}

function ownLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "latin1");
  } catch {
    // Not Linux.
    return "";
  }
}
