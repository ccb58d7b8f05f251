/** Milliseconds that a response gets to be complete. */
const soonMs = 50;

/**
 * A response that is complete soon, in one piece; any other as the stream that it is. To the agent, each piece of a
 * stream is a packet of its own: headers, answer and end of a short call are one instead of three.
 */
export async function wholeIfSoon(response: Response, milliseconds = soonMs): Promise<Response> {
  const { status, headers, body } = response;
  if (body === null) return response;
  const reader = body.getReader();
  const pieces: Uint8Array[] = [];
  const late = Promise.withResolvers<"late">();
  const timer = setTimeout(() => late.resolve("late"), milliseconds);
  try {
    for (;;) {
      const reading = reader.read();
      const read = await Promise.race([reading, late.promise]);
      if (read === "late") return new Response(continued(pieces, reading, reader), { status, headers });
      if (read.done) return new Response(Buffer.concat(pieces), { status, headers });
      pieces.push(read.value);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** A stream of which some pieces were read, and the next one is being read. */
function continued(
  pieces: readonly Uint8Array[],
  next: ReturnType<typeof reader.read>,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array> {
  let reading: typeof next | undefined = next;
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
    },
    async pull(controller) {
      const { done, value } = await (reading ?? reader.read());
      reading = undefined;
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
