import { setFlagsFromString } from "node:v8";
import { openFilesLimit } from "@ambit/egress/open-files";

/** Descriptors that Ambit needs to start and to confine one run. A server needs about twenty more for each run. */
const minOpenFiles = 256;

/**
 * The problem with the limit of files that this process may open, with its fix; undefined if there is none. Too few
 * cause unrelated faults later.
 *
 * @param limits the text of `/proc/self/limits`, by default this process's; without it, no problem is assumed.
 */
export function tooFewOpenFiles(limits?: string): string | undefined {
  const soft = openFilesLimit(limits);
  if (soft === undefined || soft >= minOpenFiles) return undefined;
  return `only ${soft} files may be open at once, and Ambit needs ${minOpenFiles}: raise the limit (\`ulimit -n 4096\`; LimitNOFILE=4096 of a systemd service; --ulimit nofile=4096 of a container)`;
}

/**
 * Keeps V8's space for young objects at its minimum. A start and its probes create mostly short-lived objects, but V8
 * would enlarge that space for them, and a server that is idle afterwards would keep all of it: some 40 MiB.
 */
export function fixYoungHeapSize(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** Lets the space grow as needed, V8's own default. */
export function releaseYoungHeap(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
}
