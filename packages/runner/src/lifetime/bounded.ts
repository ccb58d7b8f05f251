import { settlesWithin } from "./linked-abort.js";

const over = { done: true, value: undefined } as const;

/**
 * Iterates, but once the signal aborts gives the source only so long to end by itself. By hand: an async generator on an
 * event's way costs as much as all the rest of it.
 */
export function bounded<Item>(
  source: AsyncIterable<Item>,
  signal: AbortSignal,
  graceMs: number,
): AsyncIterableIterator<Item, undefined> {
  const iterator = source[Symbol.asyncIterator]();
  let timer: NodeJS.Timeout | undefined;
  let overdue = false;
  let isOver = false;
  let isWaiting = false;
  // Of the step under way: racing each against one long-lived promise would pile up on it.
  let resolve: (result: IteratorResult<Item, undefined>) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const end = () => {
    isOver = true;
    signal.removeEventListener("abort", begin);
    clearTimeout(timer);
  };
  const fail = (reason: unknown) => {
    if (isOver) return;
    end();
    const refuse = reject;
    void leave(iterator, overdue ? 0 : graceMs).then(() => refuse(reason));
  };
  const take = (next: IteratorResult<Item>) => {
    if (isOver) return;
    isWaiting = false;
    if (next.done === true) end();
    resolve(next.done === true ? over : next);
  };
  const giveUp = () => {
    overdue = true;
    if (isWaiting) fail(signal.reason);
  };
  const begin = () => {
    timer = setTimeout(giveUp, graceMs);
  };
  const step = (resolveStep: typeof resolve, rejectStep: typeof reject) => {
    resolve = resolveStep;
    reject = rejectStep;
    isWaiting = true;
    if (overdue) return fail(signal.reason);
    try {
      iterator.next().then(take, fail);
    } catch (error) {
      fail(error);
    }
  };
  if (signal.aborted) begin();
  else signal.addEventListener("abort", begin, { once: true });
  return {
    next: () => (isOver ? Promise.resolve(over) : new Promise(step)),
    return: async () => {
      if (isOver) return over;
      end();
      await leave(iterator, overdue ? 0 : graceMs);
      return over;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Lets the source clean up, for so long; how it takes that is no news after what ended the loop. */
async function leave(iterator: AsyncIterator<unknown>, graceMs: number): Promise<void> {
  const left = Promise.resolve(iterator.return?.()).then(
    () => undefined,
    () => undefined,
  );
  await settlesWithin(left, graceMs);
}
