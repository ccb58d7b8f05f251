import { closeSync, openSync, readSync } from "node:fs";

const beginning = Buffer.alloc(2_048);

/** The first 2 KiB of a short file in `/proc`, in latin1: fewer system calls, and no memory, for files read by the hundred. */
export function readBeginning(path: string): string {
  const file = openSync(path, "r");
  try {
    return beginning.toString("latin1", 0, readSync(file, beginning, 0, beginning.length, 0));
  } finally {
    closeSync(file);
  }
}
