import { settlesWithin } from "./linked-abort.js";

/** The source: `AgentEvents` of a turn, or any async iterable. */
export interface ItemSource<Item> {
  [Symbol.asyncIterator](): AsyncIterator<Item> & {
    /** The next item, if it has already arrived. */
    ready?(): Item | undefined;
  };
}

/**
 * Hands each item of a source to `handle`, in order. Once the signal aborts, the source has `graceMs` to end.
 * An item that has already arrived costs no promise.
 *
 * @param handle returns a promise to delay the next item.
 * @throws the signal's reason when the source didn't end in time; what the source or `handle` threw, after the source
 * had `graceMs` to clean up.
 */
export async function readBounded<Item extends NonNullable<unknown>>(
  source: ItemSource<Item>,
  signal: AbortSignal,
  graceMs: number,
  handle: (item: Item) => Promise<void> | undefined,
): Promise<void> {
  const iterator = source[Symbol.asyncIterator]();
  let timer: NodeJS.Timeout | undefined;
  let isWaiting = false;
  let isOverdue = false;
  let isOver = false;
  let giveUp: (reason: unknown) => void = () => {};
  const overdue = new Promise<never>((_resolve, reject) => {
    giveUp = reject;
  });
  const begin = () => {
    timer = setTimeout(() => {
      isOverdue = true;
      if (isWaiting) giveUp(signal.reason);
    }, graceMs);
  };
  const read = async () => {
    for (;;) {
      isWaiting = true;
      const next = await iterator.next();
      isWaiting = false;
      if (isOver || next.done === true) return;
      for (let item: Item | undefined = next.value; item !== undefined; item = iterator.ready?.()) {
        const handled = handle(item);
        if (handled !== undefined) await handled;
        if (isOverdue) throw signal.reason;
      }
    }
  };
  if (signal.aborted) begin();
  else signal.addEventListener("abort", begin, { once: true });
  try {
    await Promise.race([read(), overdue]);
  } catch (error) {
    isOver = true;
    await leave(iterator, isOverdue ? 0 : graceMs);
    throw error;
  } finally {
    signal.removeEventListener("abort", begin);
    clearTimeout(timer);
  }
}

/** Gives the source time to clean up. Its errors are ignored: the reason why the loop ended counts. */
async function leave(iterator: AsyncIterator<unknown>, graceMs: number): Promise<void> {
  const left = Promise.resolve(iterator.return?.()).then(
    () => undefined,
    () => undefined,
  );
  await settlesWithin(left, graceMs);
}
