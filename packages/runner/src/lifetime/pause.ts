/** Created once: `abort()` without a reason creates an error with its stack each time. */
const pausing = new Error("The turn pauses for its user.");

/**
 * Whether the turn waits for its user. From `begin` on, no question is held open; the calls that are allowed finish. Then
 * the pause takes effect: the turn ends, without an answer to the agent.
 */
export class Pause {
  readonly #begun = new AbortController();
  readonly #effect = new AbortController();

  /** Aborts when the turn begins to pause. */
  get begun(): AbortSignal {
    return this.#begun.signal;
  }

  /** Aborts when the turn ends for its user: nothing more is executed. */
  get effect(): AbortSignal {
    return this.#effect.signal;
  }

  get isPaused(): boolean {
    return this.begun.aborted;
  }

  get isInEffect(): boolean {
    return this.effect.aborted;
  }

  begin(): void {
    this.#begun.abort(pausing);
  }

  takeEffect(): void {
    this.begin();
    this.#effect.abort(pausing);
  }
}
