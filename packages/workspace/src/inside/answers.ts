import { writeSync } from "node:fs";
import type { WishAnswer } from "./wish.js";

const wait = new Int32Array(new SharedArrayBuffer(4));
const stdout = 1;

/** Bytes of a content that are sent at a time. */
export const chunkBytes = 65_536;

export function answer(line: WishAnswer): undefined {
  write(Buffer.from(`${JSON.stringify(line)}\n`));
}

/** A part of a file's content; an empty one ends it. */
export function sendChunk(bytes: Buffer): undefined {
  write(Buffer.concat([Buffer.from(`${bytes.length}\n`), bytes]));
}

function write(bytes: Buffer): undefined {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(stdout, bytes, at);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      Atomics.wait(wait, 0, 0, 2);
    }
  }
}
