import type { AgentEvent } from "@ambit/core/contract";
import type { ConnectionDecision } from "@ambit/core/plugin";

type DecisionEvent = AgentEvent & { type: "boundary_decision" };

/** Destinations with an event of their own while the reader is behind; the others share one event with their count. */
const maxWaiting = 100;

/**
 * Counts the boundary's decisions, and folds a repeated one into one event with a count. Nothing slows the agent's
 * connections down, so while the reader is behind, decisions gather here, folded, instead of in its queue.
 */
export class Decisions {
  readonly #waiting = new Map<string, DecisionEvent>();
  #timer: NodeJS.Timeout | undefined;
  #behind = false;
  allowed = 0;
  /** Of the allowed ones. */
  failed = 0;
  refused = 0;

  constructor(
    /** Resolves when there is room for more. */
    readonly emit: (event: AgentEvent) => Promise<void> | undefined,
    /** How long a decision waits for its repeats. */
    readonly foldMs = 200,
  ) {}

  /** @param count how often it was made. */
  record({ target, allowed, reason, failure, isReported }: ConnectionDecision, count = 1): void {
    if (!allowed) this.refused += count;
    else if (isReported !== true) this.allowed += count;
    if (failure !== undefined) this.failed += count;
    const key = JSON.stringify([allowed, target, reason, failure]);
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) {
      waiting.count += count;
      return;
    }
    // Consecutive repeats: another decision ends the count, as long as it can be reported.
    if (!this.#behind) this.flush();
    if (this.#waiting.size >= maxWaiting) {
      this.#fold(allowed, count);
      return;
    }
    this.#waiting.set(key, { type: "boundary_decision", target, allowed, reason, failure, count });
    this.#timer ??= setTimeout(() => {
      if (!this.#behind) this.flush();
    }, this.foldMs);
  }

  /** Reports what waits, even if the reader has no room. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const events = [...this.#waiting.values()];
    this.#waiting.clear();
    let room: Promise<void> | undefined;
    for (const event of events) room = this.emit(event);
    if (room === undefined) return;
    this.#behind = true;
    void room.then(() => {
      this.#behind = false;
      this.flush();
    });
  }

  #fold(allowed: boolean, count: number): void {
    const key = `${allowed} others`;
    const others = this.#waiting.get(key);
    if (others !== undefined) others.count += count;
    else {
      const reason = "more destinations than can have an event each; the receipt counts all of them";
      this.#waiting.set(key, { type: "boundary_decision", target: "others", allowed, reason, count });
    }
  }
}
