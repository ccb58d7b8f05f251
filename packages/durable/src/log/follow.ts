import { NotFound } from "@ambit/core";
import { idOfRun } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { patiently } from "../outage.js";
import type { EventChunk, Store } from "../store/index.js";
import type { Heads } from "./heads.js";
import type { LogTail } from "./log-tail.js";

/** Characters that are read at a time for one reader. */
const pageCharacters = 131_072;

/** Stream records as NDJSON, with the number of the first one and their count. */
export type Records = EventChunk;

export interface Source {
  readonly store: Pick<Store, "get" | "read">;
  readonly heads: Heads;
  readonly log: Log;
  readonly retryTimeoutMs: number;
  /** For a run of this replica. */
  tail(id: string): LogTail | undefined;
}

/**
 * A run's records after this one: events as they are committed, by any replica, then the result. Ends early when the
 * reader leaves.
 * @throws NotFound when the run is deleted; StoreFailed
 */
export async function* follow(
  source: Source,
  id: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<Records, void, undefined> {
  let last = after;
  while (!signal.aborted) {
    const known = source.tail(id);
    const tail = known?.isLost === false ? known : undefined;
    const recent = tail?.after(last, pageCharacters);
    const chunks = recent ?? (await read(source, id, last, signal));
    for (const chunk of chunks) {
      yield without(chunk, last);
      last = chunk.first + chunk.count - 1;
      if (signal.aborted) return;
    }
    if (chunks.length > 0) continue;
    const end = tail === undefined ? await endOf(source, id, last, signal) : endOfTail(tail);
    if (end !== undefined) {
      // A reader that already has the result gets nothing.
      const isNew = last <= end.events;
      if (isNew) yield { first: last + 1, count: 1, text: `{"kind":"result","result":${end.result}}\n` };
      return;
    }
    await (tail === undefined ? source.heads.beyond(id, last, signal) : tail.changed(signal));
  }
}

function read(
  { store, log, retryTimeoutMs }: Source,
  id: string,
  after: number,
  signal: AbortSignal,
): Promise<readonly EventChunk[]> {
  const act = () => store.read(id, after, pageCharacters);
  return patiently("read events", retryTimeoutMs, log, act, signal);
}

interface End {
  readonly events: number;
  readonly result: string;
}

function endOfTail({ result, last }: LogTail): End | undefined {
  return result === undefined ? undefined : { events: last, result };
}

/** The result, after all events before it were read. */
async function endOf(
  { store, log, retryTimeoutMs }: Source,
  id: string,
  last: number,
  signal: AbortSignal,
): Promise<End | undefined> {
  const run = await patiently("read a run", retryTimeoutMs, log, () => store.get(id), signal);
  if (run === undefined)
    throw new NotFound(`There is no run '${idOfRun(id)}': it was deleted, or never started.`);
  const { events, result } = run;
  return events <= last && result !== undefined ? { events, result } : undefined;
}

/** A chunk without the records up to this one. */
function without(chunk: EventChunk, last: number): Records {
  const surplus = last + 1 - chunk.first;
  if (surplus <= 0) return chunk;
  let start = 0;
  for (let line = 0; line < surplus; line += 1) start = chunk.text.indexOf("\n", start) + 1;
  return { first: last + 1, count: chunk.count - surplus, text: chunk.text.slice(start) };
}
