import type { AgentEvent } from "../contract/index.js";
import type { ConnectionDecision } from "../plugin/index.js";

/** Counts the boundary's decisions, and folds a repeated one into one event with a count. */
export class Decisions {
  #pending: (AgentEvent & { type: "boundary_decision" }) | undefined;
  #timer: NodeJS.Timeout | undefined;
  allowed = 0;
  refused = 0;

  constructor(
    readonly emit: (event: AgentEvent) => void,
    /** How long a decision waits for its repeats. */
    readonly foldMs = 200,
  ) {}

  record({ target, allowed, reason }: ConnectionDecision): void {
    if (allowed) this.allowed += 1;
    else this.refused += 1;
    const pending = this.#pending;
    if (pending?.target === target && pending.allowed === allowed && pending.reason === reason) {
      pending.count += 1;
      return;
    }
    this.flush();
    this.#pending = { type: "boundary_decision", target, allowed, reason, count: 1 };
    this.#timer = setTimeout(() => this.flush(), this.foldMs);
  }

  flush(): void {
    clearTimeout(this.#timer);
    if (this.#pending !== undefined) this.emit(this.#pending);
    this.#pending = undefined;
  }
}
