import { injectable } from "tsyringe";

/** Made once: `abort()` without a reason makes an error each time, with its stack. */
const pausing = new Error("The turn pauses for its user.");

/** Whether the run's turn waits for its user: it then ends without an answer to the agent. */
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
