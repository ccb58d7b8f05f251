import { readdirSync, readFileSync } from "node:fs";

/** How many processes of this host have the marker in their command line; jails' processes are among them. */
export function running(marker: string): number {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && commandOf(name).includes(marker)).length;
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    // It has left meanwhile.
    return "";
  }
}

let count = 0;

/** An argument for `sleep` that nobody else on this host uses. */
export function sleepMarker(): string {
  count += 1;
  return `${600 + count}.${process.pid}${Date.now() % 100_000}`;
}
