const endings = ["SIGINT", "SIGTERM"] as const;
export type EndingSignal = (typeof endings)[number];

/**
 * The signals that ask this process to end, one after the other. From its making on none of them ends the process by
 * itself, also not one that follows the first in the same moment.
 */
export class EndingSignals {
  readonly #unheard: EndingSignal[] = [];
  #hear: ((name: EndingSignal) => void) | undefined;

  constructor() {
    for (const ending of endings) process.on(ending, (name) => this.#arrived(name));
  }

  /** The next one, which may have come already. One call at a time. */
  next(): Promise<EndingSignal> {
    const waiting = this.#unheard.shift();
    if (waiting !== undefined) return Promise.resolve(waiting);
    return new Promise((resolve) => {
      this.#hear = resolve;
    });
  }

  #arrived(name: NodeJS.Signals): void {
    const ending = endings.find((one) => one === name);
    if (ending === undefined) return;
    if (this.#hear === undefined) this.#unheard.push(ending);
    this.#hear?.(ending);
    this.#hear = undefined;
  }
}
