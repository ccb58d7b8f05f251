import type { Readable } from "node:stream";
import { turnForOne } from "@ambit/core/plugin";
import type { StreamReplacer } from "@ambit/egress";

export interface RelayOptions {
  /** Replaces a credential that the response repeats. */
  readonly replacer: StreamReplacer;
  /** Aborts when the requester is gone, even if nothing is being read. */
  readonly signal: AbortSignal;
  /** Reads the response as it passes. */
  onBytes(bytes: Buffer): void;
  /** Called once. `left`: the requester is gone. */
  onEnd(how: "whole" | "left" | { readonly failed: unknown }): void;
}

/** Milliseconds and bytes in which a response is still read that has been left: what arrived already is counted. */
const drainMs = 250;
const maxDrainBytes = 8 * 1024 * 1024;

/** A response's body as it is passed on: one piece at a time, when the reader asks for it. */
export function relay(
  body: Readable,
  { replacer, signal, onBytes, onEnd }: RelayOptions,
): ReadableStream<Uint8Array> {
  const pieces: AsyncIterator<Buffer> = body[Symbol.asyncIterator]();
  let isOver = false;
  const over = (how: Parameters<RelayOptions["onEnd"]>[0]) => {
    if (isOver) return;
    isOver = true;
    signal.removeEventListener("abort", onAbort);
    onEnd(how);
  };
  let isLeft = false;
  const leave = async () => {
    if (isLeft || isOver) return;
    isLeft = true;
    const late = setTimeout(() => body.destroy(), drainMs);
    body.on("error", () => undefined);
    over(await drained(pieces, onBytes));
    clearTimeout(late);
    body.destroy();
  };
  const onAbort = () => void leave();
  signal.addEventListener("abort", onAbort, { once: true });
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          for (;;) {
            const { done, value } = await pieces.next();
            // A piece may hold thousands of values, and many answers may arrive at once.
            if (done !== true) await turnForOne();
            if (isLeft && done !== true) onBytes(value);
            if (isLeft || isOver) return;
            const passed = done === true ? replacer.end() : replacer.push(value);
            // Counted before it is passed on: a response that exceeds its budget ends here.
            if (done === true) over("whole");
            else onBytes(value);
            if (passed.length > 0) controller.enqueue(passed);
            if (done === true) return controller.close();
            if (passed.length > 0) return;
          }
        } catch (error) {
          if (isLeft) return;
          over({ failed: error });
          controller.error(error);
        }
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
}

/** Reads on without passing anything on. @returns whether the response was complete. */
async function drained(
  pieces: AsyncIterator<Buffer>,
  onBytes: (bytes: Buffer) => void,
): Promise<"whole" | "left"> {
  let size = 0;
  try {
    while (size < maxDrainBytes) {
      const { done, value } = await pieces.next();
      if (done === true) return "whole";
      await turnForOne();
      size += value.length;
      onBytes(value);
    }
  } catch {
    // It was interrupted, or took too long: what has arrived is counted.
  }
  return "left";
}
