import { settlesWithin } from "./linked-abort.js";

/** Iterates, but once the signal aborts gives the source only so long to end by itself. */
export async function* bounded<Item>(
  source: AsyncIterable<Item>,
  signal: AbortSignal,
  graceMs: number,
): AsyncGenerator<Item, void, undefined> {
  const iterator = source[Symbol.asyncIterator]();
  let timer: NodeJS.Timeout | undefined;
  let overdue = false;
  let ended = false;
  // Replaced at every step: racing each against one long-lived promise would pile up on it.
  let giveUp = () => {};
  const begin = () => {
    timer = setTimeout(() => {
      overdue = true;
      giveUp();
    }, graceMs);
  };
  if (signal.aborted) begin();
  else signal.addEventListener("abort", begin, { once: true });
  const step = () =>
    new Promise<IteratorResult<Item>>((resolve, reject) => {
      giveUp = () => reject(signal.reason);
      if (overdue) giveUp();
      iterator.next().then(resolve, reject);
    });
  try {
    for (let next = await step(); next.done !== true; next = await step()) yield next.value;
    ended = true;
  } finally {
    signal.removeEventListener("abort", begin);
    clearTimeout(timer);
    if (!ended) await leave(iterator, overdue ? 0 : graceMs);
  }
}

/** Lets the source clean up, for so long; how it takes that is no news after what ended the loop. */
async function leave(iterator: AsyncIterator<unknown>, graceMs: number): Promise<void> {
  const left = Promise.resolve(iterator.return?.()).then(
    () => undefined,
    () => undefined,
  );
  await settlesWithin(left, graceMs);
}
