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
