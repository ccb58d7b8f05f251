import type { AgentEvent, RunResult, StreamRecord } from "@ambit/core/contract";
import type { RunEvents } from "./run-events.js";

/** Yields the events of a run in groups, as they arrive. @param result resolves once everything is closed. */
export type EventReader<Item> = (
  events: Pick<RunEvents, "take" | "takeAll" | "more">,
  result: () => Promise<RunResult | undefined>,
) => () => Promise<IteratorResult<Item, undefined>>;

/** Yields the events one by one, then the result. */
export const nextRecord: EventReader<StreamRecord> = (events, result) => {
  let isDelivered = false;
  const waitForNext = async (): Promise<IteratorResult<StreamRecord, undefined>> => {
    while (await events.more()) {
      const event = events.take();
      if (event !== undefined) return recordOf(event);
    }
    const last = isDelivered ? undefined : await result();
    if (last === undefined) return { done: true, value: undefined };
    isDelivered = true;
    return { done: false, value: { kind: "result", result: last } };
  };
  // What has already arrived costs only one promise.
  return () => {
    const event = events.take();
    return event === undefined ? waitForNext() : Promise.resolve(recordOf(event));
  };
};

/** The events of a run since the last read, then its one result. */
export type RunPart = { readonly events: readonly AgentEvent[] } | { readonly result: RunResult };

/** Yields all waiting events together, then the result. */
export const nextPart: EventReader<RunPart> = (events, result) => {
  let isDelivered = false;
  return async () => {
    while (await events.more()) {
      const waiting = events.takeAll();
      if (waiting.length > 0) return { done: false, value: { events: waiting } };
    }
    const last = isDelivered ? undefined : await result();
    if (last === undefined) return { done: true, value: undefined };
    isDelivered = true;
    return { done: false, value: { result: last } };
  };
};

function recordOf(event: AgentEvent): IteratorResult<StreamRecord, undefined> {
  return { done: false, value: { kind: "event", event } };
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
