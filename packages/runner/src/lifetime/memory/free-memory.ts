import { totalmem } from "node:os";

/** The share of memory that is available to this process and what it starts: of the host, or of its control group. 0 to 1. */
export function freeMemory(): number {
  const limit = process.constrainedMemory();
  const total = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  return Math.min(1, process.availableMemory() / total);
}
