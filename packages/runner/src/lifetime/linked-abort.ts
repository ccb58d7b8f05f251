import { unlessAborted } from "@ambit/core/plugin";

export { unlessAborted };

/**
 * An abort controller that follows several signals and can stop following them: `AbortSignal.any` keeps long-lived ones
 * alive.
 */
export class LinkedAbort implements Disposable {
  readonly #controller = new AbortController();
  readonly #release: (() => void)[] = [];

  constructor(...sources: readonly AbortSignal[]) {
    for (const source of sources) {
      const follow = () => this.abort(source.reason);
      if (source.aborted) follow();
      source.addEventListener("abort", follow, { once: true });
      this.#release.push(() => source.removeEventListener("abort", follow));
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The first reason counts. */
  abort(reason: unknown): void {
    if (!this.signal.aborted) this.#controller.abort(reason);
  }

  after(milliseconds: number, reason: () => unknown): void {
    const timer = setTimeout(() => this.abort(reason()), milliseconds);
    this.#release.push(() => clearTimeout(timer));
  }

  [Symbol.dispose](): void {
    for (const release of this.#release.splice(0)) release();
  }
}

/** Resolves when the signal aborts, or immediately when it has. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** Whether the promise, which must not reject, settles within the given milliseconds. */
export async function settlesWithin(promise: Promise<unknown>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, milliseconds), false);
  });
  try {
    return await Promise.race([promise.then(() => true), limit]);
  } finally {
    clearTimeout(timer);
  }
}

/** The step's result. Once the signal aborts, the step has a limited time left to return it. */
export async function settledWithin<Result>(
  signal: AbortSignal,
  graceMs: number,
  step: () => Promise<Result>,
): Promise<Result> {
  using overdue = new LinkedAbort();
  const begin = () => overdue.after(graceMs, () => signal.reason);
  if (signal.aborted) begin();
  else signal.addEventListener("abort", begin, { once: true });
  try {
    return await unlessAborted(overdue.signal, step);
  } finally {
    signal.removeEventListener("abort", begin);
  }
}
