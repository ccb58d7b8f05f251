import { once } from "node:events";
import type { Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";

/** Writes a number of bytes, as fast as the reader takes them or at a given rate. */
export async function pacedWriter(
  to: Writable,
  chunk: Buffer,
  bytes: number,
  bytesPerSecond = Number.POSITIVE_INFINITY,
): Promise<void> {
  const begun = performance.now();
  for (let sent = 0; sent < bytes; ) {
    const piece = chunk.subarray(0, Math.min(bytes - sent, chunk.length));
    sent += piece.length;
    if (!to.write(piece)) await once(to, "drain");
    while (sent / bytesPerSecond > (performance.now() - begun) / 1_000) await delay(1);
  }
}
