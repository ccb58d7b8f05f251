import type { EventRecord, RunResult, StreamRecord } from "@ambit/core/contract";

/**
 * The one buffer between a run and its log: many writers, one reader that takes all at once, bounded. `push` resolves when
 * the reader has caught up, so that a slow log slows the agent instead of filling our memory.
 */
export class EventChannel<Event extends NonNullable<unknown>> {
  #waiting: Event[] = [];
  #size = 0;
  readonly #writers: (() => void)[] = [];
  #reader: { readonly wake: () => void; readonly characters: number } | undefined;
  #closed = false;

  /** @param maxCharacters of the waiting events. A push beyond waits. The default is written in about a millisecond. */
  constructor(readonly maxCharacters = 131_072) {}

  /** Characters of the waiting events. */
  get size(): number {
    return this.#size;
  }

  /** Resolves immediately while there is room. After `close` the event is dropped, since nothing reads it. */
  push(event: Event, size: number): Promise<void> | undefined {
    if (this.#closed) return undefined;
    this.#waiting.push(event);
    this.#size += size;
    this.#wakeReader();
    if (this.#size <= this.maxCharacters) return undefined;
    return new Promise((resolve) => this.#writers.push(resolve));
  }

  /** Ends the reader's loop once it has taken the waiting events. */
  close(): void {
    this.#closed = true;
    this.#wakeReader();
    this.#wakeWriters();
  }

  /** The reader has left: the waiting events are dropped. */
  abandon(): void {
    this.#waiting = [];
    this.#size = 0;
    this.close();
  }

  /** All waiting events, in order. */
  take(): readonly Event[] {
    const taken = this.#waiting;
    this.#waiting = [];
    this.#size = 0;
    this.#wakeWriters();
    return taken;
  }

  /** Resolves when there is an event to take; with false at the end. */
  async more(): Promise<boolean> {
    while (this.#waiting.length === 0) {
      if (this.#closed) return false;
      await new Promise<void>((resolve) => {
        this.#reader = { wake: resolve, characters: 0 };
      });
    }
    return true;
  }

  /** Resolves when the waiting events have this size, no more can come, or the time is over. */
  async gather(characters: number, timeoutMs: number): Promise<void> {
    if (this.#closed || this.#size >= characters) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#reader = undefined;
        resolve();
      };
      const timer = setTimeout(wake, timeoutMs);
      this.#reader = { wake, characters };
    });
  }

  /** After everything that is ready has been written, so that events that arrive together are read together. */
  #wakeReader(): void {
    const reader = this.#reader;
    if (reader === undefined || (!this.#closed && this.#size < reader.characters)) return;
    this.#reader = undefined;
    process.nextTick(reader.wake);
  }

  #wakeWriters(): void {
    for (const wake of this.#writers.splice(0)) wake();
  }
}

/** The events of a run since the last read, then its one result. */
export type RunPart = { readonly records: readonly EventRecord[] } | { readonly result: RunResult };

/**
 * After a part of at least `events`, the next one gathers for `timeoutMs`, or until it has `characters`. An event that
 * comes alone is read immediately.
 */
export interface GatheringLimits {
  readonly events: number;
  readonly characters: number;
  readonly timeoutMs: number;
}

/** The next item of a run; not called again before it has settled. */
type Next<Item> = () => Promise<IteratorResult<Item, undefined>>;

/**
 * Yields all waiting events together, then the result.
 * @param result resolves once everything is closed.
 * @param gathering Default: none.
 */
export function nextPart(
  unread: EventChannel<EventRecord>,
  result: () => Promise<RunResult | undefined>,
  gathering?: GatheringLimits,
): Next<RunPart> {
  let isStream = false;
  let isDelivered = false;
  return async () => {
    if (isStream && gathering !== undefined) await unread.gather(gathering.characters, gathering.timeoutMs);
    while (await unread.more()) {
      const waiting = unread.take();
      isStream = gathering !== undefined && waiting.length >= gathering.events;
      if (waiting.length > 0) return { done: false, value: { records: waiting } };
    }
    const last = isDelivered ? undefined : await result();
    if (last === undefined) return { done: true, value: undefined };
    isDelivered = true;
    return { done: false, value: { result: last } };
  };
}

/** The same one by one. */
export function nextRecord(next: Next<RunPart>): Next<StreamRecord> {
  let records: readonly EventRecord[] = [];
  let index = 0;
  return async () => {
    for (;;) {
      const record = records[index];
      index += 1;
      if (record !== undefined) return { done: false, value: record };
      const part = await next();
      if (part.done) return part;
      if ("result" in part.value)
        return { done: false, value: { kind: "result", result: part.value.result } };
      records = part.value.records;
      index = 0;
    }
  };
}

/**
 * A generator that can be left at any time. One made by `async function*` can't: its `return()` waits until a
 * pending `next()` has its value, and runs nothing before the first.
 *
 * @param next the next item; not called again before it has settled, nor once the reader has left.
 * @param leave runs once, when the reader leaves; the reader waits for it.
 */
export function cancellable<Item>(
  next: () => Promise<IteratorResult<Item, undefined>>,
  leave: () => Promise<void>,
): AsyncGenerator<Item, void, undefined> {
  const over = { done: true, value: undefined } as const;
  let left: Promise<void> | undefined;
  const end = () => {
    left ??= leave();
    return left;
  };
  return {
    next: () => (left === undefined ? next() : left.then(() => over)),
    return: () => end().then(() => over),
    throw: async (error: unknown) => {
      await end();
      throw error;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
    [Symbol.asyncDispose]: end,
  };
}
