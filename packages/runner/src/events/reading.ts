import type { AgentEvent, RunResult, StreamRecord } from "@ambit/core/contract";
import type { RunEvents } from "./run-events.js";

/** Gives what a run tells, each time something. @param result once everything is closed. */
export type Reader<Item> = (
  events: Pick<RunEvents, "take" | "takeAll" | "more">,
  result: () => Promise<RunResult | undefined>,
) => () => Promise<IteratorResult<Item, undefined>>;

/** Gives the events one after the other, then the result once. */
export const nextRecord: Reader<StreamRecord> = (events, result) => {
  let told = false;
  const waitForNext = async (): Promise<IteratorResult<StreamRecord, undefined>> => {
    while (await events.more()) {
      const event = events.take();
      if (event !== undefined) return recordOf(event);
    }
    const last = told ? undefined : await result();
    if (last === undefined) return { done: true, value: undefined };
    told = true;
    return { done: false, value: { kind: "result", result: last } };
  };
  // What is there already costs no more than one promise.
  return () => {
    const event = events.take();
    return event === undefined ? waitForNext() : Promise.resolve(recordOf(event));
  };
};

/** What a run has told since the last time, then its result, once. */
export type RunPart = { readonly events: readonly AgentEvent[] } | { readonly result: RunResult };

/** Gives all events that wait together, then the result once. */
export const nextPart: Reader<RunPart> = (events, result) => {
  let told = false;
  return async () => {
    while (await events.more()) {
      const waiting = events.takeAll();
      if (waiting.length > 0) return { done: false, value: { events: waiting } };
    }
    const last = told ? undefined : await result();
    if (last === undefined) return { done: true, value: undefined };
    told = true;
    return { done: false, value: { result: last } };
  };
};

function recordOf(event: AgentEvent): IteratorResult<StreamRecord, undefined> {
  return { done: false, value: { kind: "event", event } };
}

/**
 * A generator that can be left at any time. One that `async function*` makes can't: its `return()` waits until a
 * pending `next()` has its value, and runs nothing at all before the first.
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
