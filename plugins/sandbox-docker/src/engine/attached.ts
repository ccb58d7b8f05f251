import type { Duplex } from "node:stream";
import { Readable } from "node:stream";
import type { Pipe } from "@ambit/bridge";

const headLength = 8;
const standardError = 2;

/**
 * What a command prints, out of the engine's frames: eight bytes (stream, length) before each piece. What it says on
 * standard error counts only until it prints anything: then it says why it didn't start.
 */
export async function* payloadsOf(frames: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  let head: Buffer = Buffer.alloc(0);
  let left = 0;
  let isError = false;
  let hasPrinted = false;
  for await (const chunk of frames) {
    for (let rest = chunk; rest.length > 0; ) {
      if (left === 0) {
        const missing = headLength - head.length;
        head = Buffer.concat([head, rest.subarray(0, missing)]);
        rest = rest.subarray(missing);
        if (head.length < headLength) continue;
        isError = head[0] === standardError;
        left = head.readUInt32BE(4);
        head = Buffer.alloc(0);
        continue;
      }
      const piece = rest.subarray(0, left);
      rest = rest.subarray(piece.length);
      left -= piece.length;
      if (!isError) hasPrinted = true;
      if (!isError || !hasPrinted) yield piece;
    }
  }
}

/** A stream that the engine joined to a command, as the bridge takes it. */
export function pipeOf(stream: Duplex): Pipe {
  // It also fails the write, and ends the output.
  stream.on("error", () => undefined);
  return {
    output: Readable.toWeb(Readable.from(payloadsOf(stream), { objectMode: false })),
    write: (lines) =>
      new Promise((resolve, reject) => {
        stream.write(lines, (error) => (error ? reject(error) : resolve()));
      }),
    close: async () => void stream.destroy(),
  };
}
