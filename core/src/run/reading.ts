/**
 * A generator that can be left at any time. A plain one can't: its `return()` waits until a pending `next()` has its
 * value, and runs nothing at all before the first.
 *
 * @param leave runs once, when the reader leaves; the reader waits for it.
 */
export function leavable<Item>(
  inner: AsyncGenerator<Item, void, undefined>,
  leave: () => Promise<void>,
): AsyncGenerator<Item, void, undefined> {
  const end = async () => {
    const left = leave();
    await inner.return();
    await left;
  };
  return {
    next: () => inner.next(),
    return: async () => {
      await end();
      return { done: true, value: undefined };
    },
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
