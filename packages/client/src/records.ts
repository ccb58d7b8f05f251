import type { StreamRecord } from "./api.js";
import { AmbitError } from "./errors.js";

/** Characters of one record: a result has 16 Mi characters of texts at most, which JSON may write as six each. */
const maxRecordCharacters = 128 * 1024 * 1024;

/** A stream ended, or was silent for too long, before its result. The run may go on. */
export class StreamCut extends Error {
  override readonly name = "StreamCut";
}

/**
 * The records of an NDJSON response as they arrive. A record that was cut off isn't one.
 *
 * @param silenceMs without a byte; the server sends one every 15 s.
 * @throws StreamCut if the stream is silent for that long, or fails
 * @throws AmbitError for what isn't a record
 */
export async function* recordsOf(
  body: ReadableStream<Uint8Array>,
  silenceMs: number,
): AsyncGenerator<StreamRecord, void, void> {
  yield* recordsThat(body, silenceMs, isRecord);
}

/** Reads a stream of records of another contract. */
export async function* recordsThat<Value>(
  body: ReadableStream<Uint8Array>,
  silenceMs: number,
  isOne: (value: unknown) => value is Value,
): AsyncGenerator<Value, void, void> {
  for await (const line of linesOf(body, silenceMs)) yield recordOf(line, isOne);
}

/** The lines as texts. Blank ones, which keep a silent stream alive, are skipped. */
async function* linesOf(
  body: ReadableStream<Uint8Array>,
  silenceMs: number,
): AsyncGenerator<string, void, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let pieces: string[] = [];
  let length = 0;
  try {
    for (;;) {
      const { value, done } = await withinSilence(reader.read(), silenceMs);
      if (done) return;
      const [first = "", ...lines] = decoder.decode(value, { stream: true }).split("\n");
      pieces.push(first);
      length += first.length;
      if (length > maxRecordCharacters) throw notARecord("it is too long");
      for (const line of lines) {
        const text = pieces.join("");
        [pieces, length] = [[line], line.length];
        if (text.trim() !== "") yield text;
      }
    }
  } finally {
    // The connection is of no more use, whichever way this ended.
    reader.cancel().catch(() => undefined);
  }
}

async function withinSilence<Value>(reading: Promise<Value>, silenceMs: number): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new StreamCut(`the stream was silent for ${silenceMs} ms`)), silenceMs);
  });
  try {
    return await Promise.race([reading.catch(cut), silence]);
  } finally {
    clearTimeout(timer);
  }
}

function cut(cause: unknown): never {
  throw new StreamCut("the stream was cut", { cause });
}

function recordOf<Value>(line: string, isOne: (value: unknown) => value is Value): Value {
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch (cause) {
    throw notARecord("it isn't JSON", cause);
  }
  if (isOne(record)) return record;
  throw notARecord(`it begins with ${line.slice(0, 40)}`);
}

/** The server is trusted to follow its own contract, within a record's kind. */
function isRecord(value: unknown): value is StreamRecord {
  if (typeof value !== "object" || value === null || !("kind" in value)) return false;
  return (value.kind === "event" && "event" in value) || (value.kind === "result" && "result" in value);
}

function notARecord(reason: string, cause?: unknown): AmbitError {
  return new AmbitError(`the server sent a line that is no record: ${reason}`, {
    code: "invalid_response",
    retryable: false,
    cause,
  });
}
