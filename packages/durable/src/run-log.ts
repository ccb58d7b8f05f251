import { messageOf, NotFound } from "@ambit/core";
import { idOfRun, type StreamRecord } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { retryWhileDown } from "./outage.js";
import type { StoreSettings } from "./settings.js";
import type { EventChunk, EventGroup, NewRun, RunEnd, RunHead, Store, StoredRun, Written } from "./store.js";

/** Stream records as NDJSON, with the number of the first one and their count. */
export type Records = EventChunk;

/** Events that are written together, with the questions that they ask and answer. */
export type RecordGroup = Omit<EventGroup, "runId" | "fence" | "first" | "dropped">;

/** The records of a page, parsed. */
export function* recordsIn({ text }: Records): Generator<StreamRecord, void, undefined> {
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf("\n", start);
    const record: StreamRecord = JSON.parse(text.slice(start, end));
    yield record;
    start = end + 1;
  }
}

const mebibyte = 1_048_576;
/** Characters that are read at a time for one reader. */
const pageCharacters = 131_072;
/** Characters of the latest events of a run here that its readers needn't ask the store for. */
const maxRecentCharacters = mebibyte;

export interface RunLogsOptions {
  readonly store: Pick<Store, "append" | "finish" | "get" | "read">;
  readonly settings: Pick<StoreSettings, "retryTimeoutMs" | "runMiB">;
  /**
   * Whether a log keeps only the latest `runMiB` of its run, and paces the run by its first reader. Default: it keeps all, and
   * a run that writes more than `runMiB` ends.
   */
  readonly keepsLatest?: boolean;
  readonly log: Log;
}

/**
 * The logs of runs on all replicas, in the store. Each has one writer, and any number of readers, each at its own pace. Waits for
 * a store that can't be reached for a moment.
 */
export class RunLogs {
  /** The logs that are written here. */
  readonly #open = new Map<string, RunLog>();
  /** Rows that are being read, for readers that ask for them at the same time: a result may be large. */
  readonly #reading = new Map<string, Promise<StoredRun | undefined>>();

  /** @param remoteProgress progress of runs on other replicas. */
  constructor(
    readonly options: RunLogsOptions,
    readonly remoteProgress: Pick<RemoteProgress, "beyond">,
  ) {}

  /** The log of a run that begins here. @param announced of its events, those that it has already. */
  open(id: string, fence: number, announced: NewRun["announced"]): RunLog {
    const { keepsLatest, settings } = this.options;
    const recent = new RecentRecords(keepsLatest ? settings.runMiB * mebibyte : maxRecentCharacters);
    if (announced !== undefined) recent.add({ first: 1, ...announced });
    const log = new RunLog(this, id, fence, recent, () => {
      if (this.#open.get(id) === log) this.#open.delete(id);
    });
    this.#open.set(id, log);
    return log;
  }

  /**
   * The run's records after this one: its events as they come, then the result. Ends early when the reader leaves.
   * @throws NotFound when they aren't kept any more; StoreFailed
   */
  async *follow(id: string, after: number, signal: AbortSignal): AsyncGenerator<Records, void, undefined> {
    let last = after;
    let reader: PacedReader | undefined;
    try {
      while (!signal.aborted) {
        const open = this.#open.get(id);
        // One that follows a queued run joins it when it begins.
        reader ??= open?.pace?.join(last);
        reader?.hasTaken(last);
        // There is no pause until the wait below for a run here: what is added in a pause would wake no reader.
        const chunks = open?.recent.after(last, pageCharacters) ?? (await this.#read(id, last, signal));
        const page = pageOf(chunks, last);
        if (page !== undefined) {
          yield page;
          last = page.first + page.count - 1;
          continue;
        }
        const end = open === undefined ? await this.#endOf(id, last, signal) : open.recent.end;
        if (end !== undefined) {
          // A reader that already has the result gets nothing.
          const isNew = last <= end.events;
          if (isNew) yield { first: last + 1, count: 1, text: `{"kind":"result","result":${end.result}}\n` };
          return;
        }
        // It has begun here in a pause, or ended: what was added meanwhile isn't announced again.
        if (this.#open.get(id) !== open) continue;
        await (open?.recent.changed(signal) ?? this.remoteProgress.beyond(id, last, signal));
      }
    } finally {
      reader?.leave();
    }
  }

  /** The number of the first event of a run that can still be read. */
  async firstOf(id: string, signal?: AbortSignal): Promise<number> {
    const { keepsLatest, store } = this.options;
    if (keepsLatest !== true) return 1;
    const { recent } = this.#open.get(id) ?? {};
    if (recent !== undefined) return recent.first;
    const [oldest] = await this.retryWhileDown("read events", () => store.read(id, 0, 1), signal);
    return oldest?.first ?? 1;
  }

  /** Resolves when the run may have ended, or the reader left. */
  async ended(id: string, signal: AbortSignal): Promise<void> {
    const log = this.#open.get(id);
    if (log === undefined) return this.remoteProgress.beyond(id, Number.POSITIVE_INFINITY, signal);
    while (log.recent.end === undefined && this.#open.get(id) === log && !signal.aborted)
      await log.recent.changed(signal);
  }

  /** @param signal of the one who waits. @throws StoreFailed */
  retryWhileDown<Result>(what: string, act: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const { settings, log } = this.options;
    return retryWhileDown(what, settings.retryTimeoutMs, log, act, signal);
  }

  /** @throws NotFound where the next record was dropped */
  async #read(id: string, after: number, signal: AbortSignal): Promise<readonly Records[]> {
    const read = () => this.options.store.read(id, after, pageCharacters);
    const chunks = await this.retryWhileDown("read events", read, signal);
    const [oldest] = chunks;
    if (oldest !== undefined) requireKept(id, oldest.first, after);
    return chunks;
  }

  /** The result, after all events before it were read. */
  async #endOf(id: string, last: number, signal: AbortSignal): Promise<LogEnd | undefined> {
    const run = await this.retryWhileDown("read a run", () => this.#shared(id), signal);
    if (run === undefined)
      throw new NotFound(`There is no run '${idOfRun(id)}': it was deleted, or never started.`);
    const { events, result } = run;
    return events <= last && result !== undefined ? { events, result } : undefined;
  }

  #shared(id: string): Promise<StoredRun | undefined> {
    const reading =
      this.#reading.get(id) ?? this.options.store.get(id).finally(() => this.#reading.delete(id));
    this.#reading.set(id, reading);
    return reading;
  }
}

/** @throws NotFound where the record after this one was dropped. @param first the first one that is kept */
export function requireKept(id: string, first: number, after: number): void {
  if (after + 1 >= first) return;
  const fix = `continue with after=${first - 1}, or load a store, which keeps all of them`;
  throw new NotFound(
    `The events of run '${idOfRun(id)}' before number ${first} are no longer in memory: ${fix}.`,
  );
}

/** These records as one, without those up to `last`. */
function pageOf([first, ...others]: readonly Records[], last: number): Records | undefined {
  if (first === undefined) return undefined;
  const begin = without(first, last);
  if (others.length === 0) return begin;
  const count = others.reduce((sum, chunk) => sum + chunk.count, begin.count);
  return { first: begin.first, count, text: [begin, ...others].map(({ text }) => text).join("") };
}

function without(chunk: Records, last: number): Records {
  const surplus = last + 1 - chunk.first;
  if (surplus <= 0) return chunk;
  let start = 0;
  for (let line = 0; line < surplus; line += 1) start = chunk.text.indexOf("\n", start) + 1;
  return { first: last + 1, count: chunk.count - surplus, text: chunk.text.slice(start) };
}

/** The log of a run here, for its writer. Readers get only what was committed. */
export class RunLog {
  readonly pace: Pace | undefined;
  /** Characters that the store has dropped. */
  #droppedCharacters = 0;

  constructor(
    readonly logs: RunLogs,
    readonly id: string,
    readonly fence: number,
    readonly recent: RecentRecords,
    readonly onClosed: () => void,
  ) {
    this.pace = logs.options.keepsLatest ? new Pace(recent) : undefined;
  }

  /**
   * Resolves once readers can have these events, and the log takes more. `fenced`: another replica has the run, and nothing
   * was written. `full`: the run has written more than is kept of one run.
   * @param signal aborts when the run is lost. @throws StoreFailed
   */
  async append(group: RecordGroup, signal: AbortSignal): Promise<Written | "full"> {
    const { logs, id, fence, recent, pace } = this;
    const { store, settings } = logs.options;
    const first = recent.last + 1;
    const append = () => store.append({ runId: id, fence, first, ...group, ...this.#dropped() });
    const written = await logs.retryWhileDown("keep events", append, signal);
    if (written === "fenced") return written;
    this.#droppedCharacters = recent.dropped;
    recent.add({ first, count: group.count, text: group.text });
    if (pace === undefined) return recent.written > settings.runMiB * mebibyte ? "full" : written;
    await pace.room(signal);
    return written;
  }

  /** Ends the log with the run's one result. @throws StoreFailed */
  async end(end: RunEnd, signal: AbortSignal): Promise<Written> {
    const { logs, id, fence, recent } = this;
    const finish = () => logs.options.store.finish(id, fence, end);
    const written = await logs.retryWhileDown("keep a result", finish, signal);
    if (written === "written") recent.finish(end.result);
    return written;
  }

  /** The run has ended: what is left is written without waiting for a reader. */
  runEnded(): void {
    this.pace?.runEnded();
  }

  /** The writer writes nothing more. */
  close(): void {
    this.onClosed();
    this.recent.wake();
  }

  /** The records that the readers of a log can't have any more which keeps only the latest ones. */
  #dropped(): Pick<EventGroup, "dropped"> {
    const { recent, pace } = this;
    const characters = recent.dropped - this.#droppedCharacters;
    if (pace === undefined || characters === 0) return {};
    return { dropped: { before: recent.first, characters } };
  }
}

/** The end of a log: how many events it has, and the result as JSON. */
interface LogEnd {
  readonly events: number;
  readonly result: string;
}

/** Groups of events that are kept at most: each costs memory beyond its text. */
const maxGroups = 16_384;

interface Kept extends Records {
  /** Characters of the whole log up to its end. */
  readonly end: number;
}

/** The latest part of a log, in memory, and those who wait for more. */
class RecentRecords {
  readonly #groups: Kept[] = [];
  #last = 0;
  /** Characters of the whole log, and of what is no longer kept. */
  #written = 0;
  #dropped = 0;
  #result: string | undefined;
  /** What comes after so many characters of the log is kept in any case: a reader whom the run waits for needs it. */
  needed = Number.POSITIVE_INFINITY;
  readonly #waiting = new Set<() => void>();

  /** @param maxCharacters that are kept; always the last group. */
  constructor(readonly maxCharacters: number) {}

  /** The number of the last event. */
  get last(): number {
    return this.#last;
  }

  /** Characters of all events, those that are no longer kept included. */
  get written(): number {
    return this.#written;
  }

  /** Characters that are no longer kept. */
  get dropped(): number {
    return this.#dropped;
  }

  /** The number of the first event that is kept. */
  get first(): number {
    return this.#groups[0]?.first ?? this.#last + 1;
  }

  /** The end of the log, once it has its result. */
  get end(): LogEnd | undefined {
    return this.#result === undefined ? undefined : { events: this.#last, result: this.#result };
  }

  add(records: Records): void {
    this.#written += records.text.length;
    this.#last = records.first + records.count - 1;
    this.#groups.push({ ...records, end: this.#written });
    this.#shrink();
    this.wake();
  }

  #shrink(): void {
    for (;;) {
      const [oldest] = this.#groups;
      const isOver = this.#groups.length > maxGroups || this.#written - this.#dropped > this.maxCharacters;
      if (oldest === undefined || !isOver || this.#groups.length === 1 || oldest.end > this.needed) return;
      this.#groups.shift();
      this.#dropped = oldest.end;
    }
  }

  finish(result: string): void {
    this.#result = result;
    this.wake();
  }

  /**
   * The groups after this event, up to so many characters, at least one if there is one. Undefined if they aren't kept
   * any more. A reader keeps no more than this page, however long it doesn't read.
   */
  after(event: number, maxCharacters: number): readonly Records[] | undefined {
    if (event >= this.#last) return [];
    if (this.first > event + 1) return undefined;
    const begin = this.#indexAfter(event);
    const limit = this.writtenUpTo(event) + maxCharacters;
    let end = begin + 1;
    while (end < this.#groups.length && (this.#groups[end]?.end ?? 0) <= limit) end += 1;
    return this.#groups.slice(begin, end);
  }

  /** Characters of the log up to this event, to the beginning of its group. */
  writtenUpTo(event: number): number {
    if (event >= this.#last) return this.#written;
    return this.#groups[this.#indexAfter(event) - 1]?.end ?? this.#dropped;
  }

  /** Resolves when something was added, the log ended, or the reader left. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
      if (signal.aborted) wake();
    });
  }

  wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** The index of the group that has the next event. */
  #indexAfter(event: number): number {
    let [low, high] = [0, this.#groups.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const group = this.#groups[middle];
      if (group !== undefined && group.first + group.count <= event + 1) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Characters that the reader who sets the pace may be behind; beyond, the run waits for it. */
const maxUnread = 262_144;

/** One reader of a log. */
interface PacedReader {
  /** It has taken the records up to this one. */
  hasTaken(event: number): void;
  leave(): void;
}

/**
 * Makes a run wait for the reader of its log that came first, usually the caller that began it: of a log that keeps only the
 * latest records, that reader misses none. Nothing waits for the other readers, nor where nobody reads.
 */
class Pace {
  /** Characters that each reader has taken, in the order in which they came. */
  readonly #readers = new Set<{ taken: number }>();
  #wakeWriter: (() => void) | undefined;
  #hasRunEnded = false;

  constructor(readonly recent: RecentRecords) {}

  join(after: number): PacedReader {
    const reader = { taken: this.recent.writtenUpTo(after) };
    this.#readers.add(reader);
    this.#proceed();
    return {
      hasTaken: (event) => {
        reader.taken = this.recent.writtenUpTo(event);
        this.#proceed();
      },
      leave: () => {
        this.#readers.delete(reader);
        this.#proceed();
      },
    };
  }

  /** What the run still writes is little: it waits for no reader. */
  runEnded(): void {
    this.#hasRunEnded = true;
    this.#proceed();
  }

  /** Resolves once the first reader is near enough, or the run is lost. */
  async room(signal: AbortSignal): Promise<void> {
    if (!this.#isAhead) return;
    const { promise, resolve: wake } = Promise.withResolvers<void>();
    const onAbort = () => wake();
    this.#wakeWriter = wake;
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) wake();
    await promise;
    signal.removeEventListener("abort", onAbort);
    this.#wakeWriter = undefined;
  }

  get #isAhead(): boolean {
    return !this.#hasRunEnded && this.recent.written - this.recent.needed > maxUnread;
  }

  #proceed(): void {
    const [first] = this.#readers;
    this.recent.needed = first?.taken ?? Number.POSITIVE_INFINITY;
    if (!this.#isAhead) this.#wakeWriter?.();
  }
}

/** Milliseconds between two checks of runs on other replicas. */
const pollMs = 100;
/** Runs in one query: databases limit a statement's parameters. */
const maxIds = 1_000;

interface Watch {
  head: RunHead | undefined;
  readonly wake: Set<() => void>;
}

/** Polls the progress of runs on other replicas for readers, with one query for all of them. */
export class RemoteProgress {
  readonly #watched = new Map<string, Watch>();
  #timer: NodeJS.Timeout | undefined;

  constructor(
    readonly store: Pick<Store, "heads">,
    readonly log: Log,
  ) {}

  /** Resolves when the run has more events than this, has ended, or is gone, or when the reader left. */
  beyond(id: string, event: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const watch = this.#watched.get(id) ?? { head: undefined, wake: new Set() };
      this.#watched.set(id, watch);
      const done = () => {
        watch.wake.delete(check);
        signal.removeEventListener("abort", done);
        if (watch.wake.size === 0) this.#watched.delete(id);
        resolve();
      };
      const check = () => {
        const { head } = watch;
        if (head === undefined || head.state === "ended" || head.events > event) done();
      };
      watch.wake.add(check);
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
      this.#timer ??= setTimeout(() => void this.#poll(), pollMs);
    });
  }

  async #poll(): Promise<void> {
    try {
      const ids = [...this.#watched.keys()];
      const heads: RunHead[] = [];
      for (let first = 0; first < ids.length; first += maxIds)
        heads.push(...(await this.store.heads(ids.slice(first, first + maxIds))));
      const byId = new Map(heads.map((head) => [head.id, head]));
      for (const [id, watch] of [...this.#watched]) {
        watch.head = byId.get(id);
        for (const check of [...watch.wake]) check();
      }
    } catch (error) {
      this.log.warn({ error: messageOf(error) }, "the store could not be read: readers wait");
    }
    this.#timer = this.#watched.size === 0 ? undefined : setTimeout(() => void this.#poll(), pollMs);
  }
}
