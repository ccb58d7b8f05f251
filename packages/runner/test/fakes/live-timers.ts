/** Every timer that is set while this watches and has neither fired nor been cleared. */
export class LiveTimers implements Disposable {
  readonly #live = new Set<unknown>();
  readonly #set = globalThis.setTimeout;
  readonly #clear = globalThis.clearTimeout;

  constructor() {
    const { setTimeout: set, clearTimeout: clear } = globalThis;
    const live = this.#live;
    const watched = (callback: (...given: unknown[]) => void, milliseconds?: number, ...given: unknown[]) => {
      const timer = set(() => {
        live.delete(timer);
        callback(...given);
      }, milliseconds);
      live.add(timer);
      return timer;
    };
    const cleared = (timer: NodeJS.Timeout | undefined) => {
      live.delete(timer);
      clear(timer);
    };
    // Reflect: the overloads of the real ones are of no interest to a test.
    Reflect.set(globalThis, "setTimeout", watched);
    Reflect.set(globalThis, "clearTimeout", cleared);
  }

  get count(): number {
    return this.#live.size;
  }

  [Symbol.dispose](): void {
    globalThis.setTimeout = this.#set;
    globalThis.clearTimeout = this.#clear;
  }
}
