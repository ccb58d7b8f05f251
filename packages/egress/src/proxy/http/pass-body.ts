import type { Readable, Writable } from "node:stream";
import { SmallPieces } from "@ambit/core/plugin";

/** Bytes below which a piece counts as small. */
const smallBytes = 1_024;
/** Small pieces of one body that are read in one turn of the event loop. */
const maxBurst = 128;

/**
 * Passes a body on with backpressure, and ends `to` with it. The sender chooses its chunks: what comes in small ones is put
 * together, and read in turns of the event loop, since to handle one takes as long as to handle 64 KiB.
 */
export function passBody(from: Readable, to: Writable): void {
  const small = new SmallPieces();
  let burst = 0;
  let isScheduled = false;
  let isFull = false;
  const write = (pieces: readonly Uint8Array[]) => {
    for (const piece of pieces) if (!to.write(piece)) isFull = true;
    if (isFull) from.pause();
  };
  const goOn = () => {
    if (!isFull && burst < maxBurst) from.resume();
  };
  const nextTurn = () => {
    isScheduled = false;
    burst = 0;
    if (to.destroyed || to.writableEnded) return;
    write(small.end());
    goOn();
  };
  const schedule = () => {
    isScheduled = true;
    setImmediate(nextTurn);
  };
  const take = (piece: Buffer) => {
    write(small.push(piece));
    if (piece.length >= smallBytes) return;
    burst += 1;
    if (burst >= maxBurst) from.pause();
    if (!isScheduled) schedule();
  };
  from.on("data", take);
  from.once("end", () => {
    write(small.end());
    to.end();
  });
  to.on("drain", () => {
    isFull = false;
    goOn();
  });
  // As a pipe does: what still comes isn't read.
  to.once("close", () => {
    from.off("data", take);
    from.pause();
  });
}
