/** Beats until it is disposed, and alone keeps no process alive. */
export function heartbeat(milliseconds: number, beat: (count: number) => void): Disposable {
  let count = 0;
  const timer = setInterval(() => {
    count += 1;
    beat(count);
  }, milliseconds);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
