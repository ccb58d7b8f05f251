/** Calls back regularly until it is disposed; it doesn't keep the process alive. */
export function heartbeat(milliseconds: number, beat: (count: number) => void): Disposable {
  let count = 0;
  const timer = setInterval(() => {
    count += 1;
    beat(count);
  }, milliseconds);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
