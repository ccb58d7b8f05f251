import { createHash } from "node:crypto";
import { fstatSync, readSync, writeSync } from "node:fs";
import type { LookAnswer, WishAnswer } from "./wish.js";

/** Bytes of a content that are sent at a time. */
const chunkBytes = 65_536;

export function answer(line: WishAnswer | LookAnswer): undefined {
  writeAll(Buffer.from(`${JSON.stringify(line)}\n`));
}

/** A part of a file's content; an empty one ends it. */
function sendChunk(bytes: Buffer): undefined {
  writeAll(Buffer.concat([Buffer.from(`${bytes.length}\n`), bytes]));
}

const buffer = Buffer.alloc(chunkBytes);

/** Digest of an open file of that size. */
export function digestOf(fd: number, size: number): string {
  const hash = createHash("sha256");
  forEachChunk(fd, size, (bytes) => hash.update(bytes));
  return hash.digest("hex");
}

/** Sends it. False if it was written to meanwhile. */
export function sendContent(fd: number): boolean {
  const before = fstatSync(fd);
  const sent = forEachChunk(fd, before.size, (bytes) => sendChunk(bytes));
  sendChunk(Buffer.alloc(0));
  const after = fstatSync(fd);
  const isSame =
    after.size === before.size && after.mtimeMs === before.mtimeMs && after.ctimeMs === before.ctimeMs;
  return isSame && sent === before.size;
}

function forEachChunk(fd: number, size: number, use: (bytes: Buffer) => void): number {
  let at = 0;
  while (at < size) {
    const length = readSync(fd, buffer, 0, Math.min(buffer.length, size - at), at);
    if (length === 0) break;
    use(buffer.subarray(0, length));
    at += length;
  }
  return at;
}

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
