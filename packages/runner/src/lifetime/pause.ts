import { injectable } from "tsyringe";

/** Created once: `abort()` without a reason creates an error with its stack each time. */
const pausing = new Error("The turn pauses for its user.");

/** Whether the turn waits for its user. It then ends without an answer to the agent. */
@injectable()
export class Pause {
  readonly #controller = new AbortController();

  /** Aborts when the turn pauses: no further question is asked. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isPaused(): boolean {
    return this.signal.aborted;
  }

  begin(): void {
    this.#controller.abort(pausing);
  }
}
