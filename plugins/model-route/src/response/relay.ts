import type { Readable } from "node:stream";
import type { StreamReplacer } from "@ambit/egress";

export interface RelayOptions {
  /** Puts something else over a credential that the answer repeats. */
  readonly replacer: StreamReplacer;
  /** Aborts when who asked is gone, also while nothing is read. */
  readonly signal: AbortSignal;
  /** Reads along. */
  onBytes(bytes: Buffer): void;
  /** Called once. `left`: who asked is gone. */
  onEnd(how: "whole" | "left" | { readonly failed: unknown }): void;
}

/** An answer's body as it is passed on: a piece at a time, and only when the reader asks for it. */
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
            // Counted before it is passed on: what is over its budget ends here.
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
