import type { Readable } from "node:stream";
import { LineSplitter, SandboxFailed } from "@ambit/core/plugin";

/** Bytes that a jail may send through its gate in all: a process number and one word. */
const maxSentBytes = 64;
/** Bytes of a failed launch's standard error that are kept. */
const maxBufferedBytes = 4096;

/**
 * Reads the lines that a jail sends through its gate. Variables of the payload can change what the jail's first program
 * does (`LD_PRELOAD`), so the amount is bounded.
 *
 * @throws SandboxFailed when it sends more than the lines of a gate.
 */
export async function* gateWords(gate: Readable): AsyncGenerator<string, undefined> {
  let sent = 0;
  const lines = new LineSplitter();
  for await (const chunk of gate as AsyncIterable<Buffer>) {
    sent += chunk.length;
    if (sent > maxSentBytes) {
      throw new SandboxFailed("The jail's first program sent an unexpected message: nothing was run in it");
    }
    yield* lines.push(chunk);
  }
}

/** The first part of a stream; the rest is read and discarded, so that its writer can end. */
export async function beginningOf(stream: Readable | null): Promise<string> {
  const kept: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    if (bytes >= maxBufferedBytes) continue;
    const part = Buffer.from(chunk).subarray(0, maxBufferedBytes - bytes);
    bytes += part.length;
    kept.push(part);
  }
  return Buffer.concat(kept).toString();
}
