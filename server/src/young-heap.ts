import { setFlagsFromString } from "node:v8";

/**
 * Keeps V8's space for young objects at its smallest. A start and its probes make mostly short-lived objects, but V8
 * would enlarge that space for it, and a server that is idle afterwards would keep all of it: some 40 MiB.
 */
export function holdYoungHeap(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** From now on the space grows with what runs need: V8's own default. */
export function releaseYoungHeap(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
}
