/**
 * A value, unless the signal aborts first: its source may ignore the signal, or never respond.
 * @param late gets the value if it arrives too late, to close it.
 * @throws the signal's reason
 */
export function awaitUnlessAborted<Value>(
  signal: AbortSignal,
  making: Promise<Value>,
  late: (value: Value) => void = () => undefined,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const giveUp = () => {
      isLate = true;
      reject(signal.reason);
    };
    if (signal.aborted) giveUp();
    else signal.addEventListener("abort", giveUp, { once: true });
    making
      .then((value) => (isLate ? late(value) : resolve(value)), reject)
      .finally(() => signal.removeEventListener("abort", giveUp));
  });
}
