import { exitCodes } from "./exit-codes.js";

const endings = ["SIGINT", "SIGTERM"] as const;
export type EndingSignal = (typeof endings)[number];

/**
 * Milliseconds in which a second signal counts as the same request: `timeout` signals its child and then the whole
 * process group; a shell or `npm run` passes on a signal that the terminal has already sent.
 */
export const sameRequestMs = 300;

/**
 * The requests to end this process, in order. Once constructed, signals no longer end the process by default.
 */
export class EndingSignals {
  readonly #now: () => number;
  readonly #pending: EndingSignal[] = [];
  #resolveNext: ((name: EndingSignal) => void) | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;

  /** @param source emits the signals; @param now a clock in milliseconds. */
  constructor(
    source: Pick<NodeJS.EventEmitter, "on"> = process,
    now: () => number = () => performance.now(),
  ) {
    this.#now = now;
    for (const ending of endings) source.on(ending, () => this.#arrived(ending));
  }

  /** The next signal, which may already have arrived. One call at a time. */
  next(): Promise<EndingSignal> {
    const waiting = this.#pending.shift();
    if (waiting !== undefined) return Promise.resolve(waiting);
    return new Promise((resolve) => {
      this.#resolveNext = resolve;
    });
  }

  #arrived(ending: EndingSignal): void {
    const now = this.#now();
    if (now - this.#lastAt < sameRequestMs) return;
    this.#lastAt = now;
    if (this.#resolveNext === undefined) this.#pending.push(ending);
    this.#resolveNext?.(ending);
    this.#resolveNext = undefined;
  }
}

/** The exit code of a command that was ended by a signal. */
export function exitCodeOfSignal(name: EndingSignal): number {
  return name === "SIGINT" ? exitCodes.interrupted : exitCodes.terminated;
}
