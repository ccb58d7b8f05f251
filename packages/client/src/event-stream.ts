/** Milliseconds without a value, after which a comment keeps the connection open: proxies end those that are silent for 30 s or longer. */
const defaultKeepAliveMs = 15_000;

/**
 * Values as the body of a `text/event-stream`: one `data:` line of JSON each, with LF. It is made as it is read, ends with the
 * values, and errors with them, so that a reader never takes an interrupted stream for a complete one.
 */
export function eventStream(
  values: AsyncIterator<readonly unknown[], void, void>,
  { keepAliveMs = defaultKeepAliveMs }: { readonly keepAliveMs?: number } = {},
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next: Promise<IteratorResult<readonly unknown[], void>> | undefined;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          next ??= values.next();
          const read = await beforeSilence(next, keepAliveMs);
          if (read === undefined) return controller.enqueue(encoder.encode(": \n\n"));
          next = undefined;
          if (read.done === true) return controller.close();
          if (read.value.length === 0) continue;
          const frames = read.value.map((value) => `data: ${JSON.stringify(value)}\n\n`);
          return controller.enqueue(encoder.encode(frames.join("")));
        }
      },
      async cancel() {
        await values.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

async function beforeSilence<Value>(reading: Promise<Value>, silenceMs: number): Promise<Value | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, silenceMs, undefined);
  });
  try {
    return await Promise.race([reading, silence]);
  } finally {
    clearTimeout(timer);
  }
}
