/**
 * The step's result; rejects with the signal's reason as soon as it aborts. The step's later result is dropped, so the step
 * itself must close what it opens after that.
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
