import { vi } from "vitest";

export interface Clock extends Disposable {
  /** Runs what this process waits for within that time. */
  advance(ms: number): void;
}

/** Timeouts of this process from now on: they take their time, unless the clock is advanced. Until it is disposed. */
export function startClock(): Clock {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"], shouldAdvanceTime: true });
  return {
    advance: (ms) => void vi.advanceTimersByTime(ms),
    [Symbol.dispose]: () => void vi.useRealTimers(),
  };
}
