import type { EventRecord, RunResult, StreamRecord } from "@ambit/core/contract";
import type { RunEvents } from "./run-events.js";

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
  events: Pick<RunEvents, "take" | "more" | "gather">,
  result: () => Promise<RunResult | undefined>,
  gathering?: GatheringLimits,
): Next<RunPart> {
  let isStream = false;
  let isDelivered = false;
  return async () => {
    if (isStream && gathering !== undefined) await events.gather(gathering.characters, gathering.timeoutMs);
    while (await events.more()) {
      const waiting = events.take();
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
