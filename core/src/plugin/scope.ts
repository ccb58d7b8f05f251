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
