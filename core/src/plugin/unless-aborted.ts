/**
 * The step's result, or the signal's reason as soon as it aborts. The step itself must see to what it opens
 * after that: its result is dropped.
 */
export async function unlessAborted<Result>(
  signal: AbortSignal,
  step: () => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  let follow = () => {};
  const abort = new Promise<never>((_resolve, reject) => {
    follow = () => reject(signal.reason);
    signal.addEventListener("abort", follow, { once: true });
  });
  try {
    return await Promise.race([step(), abort]);
  } finally {
    signal.removeEventListener("abort", follow);
  }
}
