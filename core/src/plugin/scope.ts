import { setMaxListeners } from "node:events";

/** Owns lifetimes: what is opened in it is closed with it, in reverse order. */
export interface Scope {
  /** Aborts when the scope begins to close, with the reason: cancelled, timed out, failed. */
  readonly signal: AbortSignal;
  /** Call it right after opening: `scope.defer(() => sandbox.close())`. Runs once; a throw is logged, the rest runs. */
  defer(close: () => void | Promise<void>): void;
}

/** Far more than one run ever has. Not 0 (no limit), which breaks clients that raise the current limit. */
const maxListeners = 10_000;

/** An abort controller for a plugin's work. Its signal may have many listeners (one per open call) without a warning. */
export function newPluginAbort(): AbortController {
  const controller = new AbortController();
  setMaxListeners(maxListeners, controller.signal);
  return controller;
}

/**
 * The step's result; rejects with the signal's reason as soon as it aborts, and at once if it has.
 *
 * @param closeLate gets a result that comes after that, to close it. Default: the step itself closes what it opens then.
 */
export async function unlessAborted<Result>(
  signal: AbortSignal,
  step: () => Promise<Result>,
  closeLate: (result: Result) => void = () => undefined,
): Promise<Result> {
  signal.throwIfAborted();
  let follow = () => {};
  let isLate = false;
  const abort = new Promise<never>((_resolve, reject) => {
    follow = () => {
      isLate = true;
      reject(signal.reason);
    };
    signal.addEventListener("abort", follow, { once: true });
  });
  try {
    const result = step();
    result.then(
      (value) => {
        if (isLate) closeLate(value);
      },
      () => undefined,
    );
    return await Promise.race([result, abort]);
  } finally {
    signal.removeEventListener("abort", follow);
  }
}

/** Creates a value at its first use and keeps it. A failed attempt is forgotten: the next use tries again. */
export function lazy<Value, Arguments extends readonly unknown[] = []>(
  make: (...values: Arguments) => Promise<Value>,
): (...values: Arguments) => Promise<Value> {
  let made: Promise<Value> | undefined;
  return (...values) => {
    made ??= make(...values).catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
