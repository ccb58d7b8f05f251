import type { Readable } from "node:stream";
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
    signal.removeEventListener("abort", leave);
    onEnd(how);
  };
  const leave = () => {
    over("left");
    body.on("error", () => undefined).destroy();
  };
  signal.addEventListener("abort", leave, { once: true });
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          for (;;) {
            const { done, value } = await pieces.next();
            if (isOver) return;
            const passed = done === true ? replacer.end() : replacer.push(value);
            // Counted before it is passed on: a response that exceeds its budget ends here.
            if (done === true) over("whole");
            else onBytes(value);
            if (passed.length > 0) controller.enqueue(passed);
            if (done === true) return controller.close();
            if (passed.length > 0) return;
          }
        } catch (error) {
          over({ failed: error });
          controller.error(error);
        }
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
}
