import type { StreamRecord } from "@ambit/core/contract";
import type { EventChunk, EventGroup, RunEnd, Written } from "../store/index.js";

/** Stream records as NDJSON, with the number of the first one and their count. */
export type Records = EventChunk;

/** Events that are written together, with the questions that they ask and answer. */
export type RecordGroup = Omit<EventGroup, "runId" | "fence" | "first" | "dropped">;

/** One run's records: one writer, and any number of readers, each at its own pace. */
export interface RunLog {
  /**
   * Resolves once readers can have these events, and the log takes more. `fenced`: another replica has the run, and nothing
   * was written. `full`: the run has written more than is kept of one run.
   * @param signal aborts when the run is lost. @throws StoreFailed
   */
  append(group: RecordGroup, signal: AbortSignal): Promise<Written | "full">;
  /** Ends the log with the run's one result. @throws StoreFailed */
  end(end: RunEnd, signal: AbortSignal): Promise<Written>;
  /**
   * The records after this one, as they come, until the result. Ends early when the reader leaves.
   * @throws NotFound when they aren't kept any more; StoreFailed
   */
  follow(after: number, signal: AbortSignal): AsyncGenerator<Records, void, undefined>;
  /** The run has ended: what is left is written without waiting for a reader. */
  runEnded(): void;
  /** Its writer writes nothing more. */
  close(): void;
}

/** The records of a page, parsed. */
export function* recordsIn({ text }: Records): Generator<StreamRecord, void, undefined> {
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf("\n", start);
    const record: StreamRecord = JSON.parse(text.slice(start, end));
    yield record;
    start = end + 1;
  }
}

/** Characters that are read at a time for one reader. */
export const pageCharacters = 131_072;

/** The end of a log: how many events it has, and the result as JSON. */
export interface LogEnd {
  readonly events: number;
  readonly result: string;
}

/** Where a reader finds a run's records. */
export interface RecordSource {
  /** A page of the records after this one; empty if there are none now. */
  read(after: number): readonly Records[] | Promise<readonly Records[]>;
  /** The end, if nothing follows this record but the result. */
  end(last: number): LogEnd | undefined | Promise<LogEnd | undefined>;
  /** Resolves when there may be more than this, or the reader left. */
  more(last: number): Promise<void>;
}

/** A run's records after this one: its events as they come, then the result. Ends early when the reader leaves. */
export async function* follow(
  source: RecordSource,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<Records, void, undefined> {
  let last = after;
  while (!signal.aborted) {
    const page = pageOf(await source.read(last), last);
    if (page !== undefined) {
      yield page;
      last = page.first + page.count - 1;
      continue;
    }
    const end = await source.end(last);
    if (end !== undefined) {
      // A reader that already has the result gets nothing.
      const isNew = last <= end.events;
      if (isNew) yield { first: last + 1, count: 1, text: `{"kind":"result","result":${end.result}}\n` };
      return;
    }
    await source.more(last);
  }
}

/** These records as one, without those up to `last`. */
function pageOf([first, ...others]: readonly Records[], last: number): Records | undefined {
  if (first === undefined) return undefined;
  const begin = without(first, last);
  if (others.length === 0) return begin;
  const count = others.reduce((sum, one) => sum + one.count, begin.count);
  return { first: begin.first, count, text: [begin, ...others].map(({ text }) => text).join("") };
}

function without(chunk: Records, last: number): Records {
  const surplus = last + 1 - chunk.first;
  if (surplus <= 0) return chunk;
  let start = 0;
  for (let line = 0; line < surplus; line += 1) start = chunk.text.indexOf("\n", start) + 1;
  return { first: last + 1, count: chunk.count - surplus, text: chunk.text.slice(start) };
}
