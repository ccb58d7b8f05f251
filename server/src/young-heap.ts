import { setFlagsFromString } from "node:v8";

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
