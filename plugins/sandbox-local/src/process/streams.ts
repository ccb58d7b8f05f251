import type { Readable, Writable } from "node:stream";

/** Pulled one chunk at a time: unread output stays in the pipe and slows its writer instead of filling memory. */
export function readableOf(source: Readable): ReadableStream<Uint8Array> {
  // When the process exits, Node discards what a pipe without a listener still holds.
  source.on("readable", () => undefined);
  const chunks = source.iterator({ destroyOnReturn: true });
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        source.once("error", (error) => controller.error(error));
      },
      async pull(controller) {
        try {
          const next = await chunks.next();
          if (next.done === true) controller.close();
          else controller.enqueue(new Uint8Array(next.value));
        } catch (error) {
          controller.error(error);
        }
      },
      cancel: () => {
        source.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Each write settles when the pipe took it; if its reader is gone the write fails, never the runner. */
export function writableOf(target: Writable): WritableStream<Uint8Array> {
  return new WritableStream<Uint8Array>({
    start(controller) {
      target.on("error", (error) => controller.error(error));
      target.on("close", () => controller.error(new Error("The process no longer reads its standard input")));
    },
    write: (chunk) =>
      new Promise<void>((resolve, reject) => {
        target.write(chunk, (error) => (error ? reject(error) : resolve()));
      }),
    close: () =>
      new Promise<void>((resolve) => {
        // A pipe whose reader is gone never calls back, and closes at most once.
        if (target.destroyed) return resolve();
        target.once("close", resolve);
        target.end(resolve);
      }),
    abort: () => {
      target.destroy();
    },
  });
}
