import { writeSync } from "node:fs";

const stdout = 1;
const neverChanged = new Int32Array(new SharedArrayBuffer(4));

/** These programs do one thing after the other, and have nothing else to do while a pipe is full or empty. */
export function waitForOneMs(): undefined {
  Atomics.wait(neverChanged, 0, 0, 1);
}

/** Writes to a pipe that may be full, which Node reports as an error. */
export function writeAll(bytes: Buffer): undefined {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(stdout, bytes, at);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      waitForOneMs();
    }
  }
}
