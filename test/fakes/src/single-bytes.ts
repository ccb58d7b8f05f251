import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** An input of single bytes, and what its reader has kept of it. */
export class SingleBytes {
  /** Bytes of memory for each byte of the input. Not a number until the input has been read to its end. */
  perByte = Number.NaN;

  constructor(readonly count: number) {}

  async *read(): AsyncGenerator<Uint8Array> {
    setFlagsFromString("--expose-gc");
    const collect: () => void = runInNewContext("gc");
    const piece = Buffer.from("x");
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let at = 0; at < this.count; at += 1) yield piece;
    collect();
    this.perByte = (process.memoryUsage().heapUsed - before) / this.count;
  }
}
