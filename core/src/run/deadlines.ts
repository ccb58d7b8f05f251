import { RunTimedOut } from "../errors.js";
import type { RunLimits } from "./limits.js";
import type { OwnedScope } from "./scope.js";

/** The run's clocks. Each that runs out aborts the scope with the reason; none outlives it. */
export class Deadlines {
  #idle: NodeJS.Timeout | undefined;
  #phase: NodeJS.Timeout | undefined;
  #holds = 0;
  #prompted = false;

  constructor(
    readonly scope: OwnedScope,
    readonly limits: RunLimits,
  ) {
    const total = this.#arm(limits.totalMs, `The run took longer than ${seconds(limits.totalMs)}.`);
    scope.defer(() => {
      for (const timer of [total, this.#idle, this.#phase]) clearTimeout(timer);
    });
  }

  /** Bounds one step of the start: opening the sandbox, starting the agent. */
  async starting<Result>(what: string, step: () => Promise<Result>): Promise<Result> {
    const timer = this.#arm(this.limits.startMs, `${what} took longer than ${seconds(this.limits.startMs)}.`);
    try {
      return await step();
    } finally {
      clearTimeout(timer);
    }
  }

  /** From here the agent owes a first event. */
  prompted(): void {
    this.#prompted = true;
    const message = `The agent gave no sign of life within ${seconds(this.limits.firstResponseMs)} of the prompt.`;
    this.#phase = this.#arm(this.limits.firstResponseMs, message);
  }

  /** The agent did something: the idle clock starts anew. */
  heard(): void {
    if (!this.#prompted) return;
    clearTimeout(this.#phase);
    if (this.#idle !== undefined) this.#idle.refresh();
    else if (this.#holds === 0) this.#startIdle();
  }

  /** A tool call has its own limit: the idle clock stands still until the returned function is called. */
  hold(): () => void {
    this.#holds += 1;
    clearTimeout(this.#idle);
    clearTimeout(this.#phase);
    this.#idle = undefined;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#holds -= 1;
      if (this.#holds === 0) this.#startIdle();
    };
  }

  #startIdle(): void {
    this.#idle = this.#arm(this.limits.idleMs, `The agent did nothing for ${seconds(this.limits.idleMs)}.`);
  }

  #arm(milliseconds: number, message: string): NodeJS.Timeout {
    return setTimeout(() => this.scope.abort(new RunTimedOut(message)), milliseconds);
  }
}

function seconds(milliseconds: number): string {
  return `${milliseconds / 1_000} s`;
}
