import type { AgentEvent } from "@ambit/core/contract";
import type { ConnectionDecision } from "@ambit/core/plugin";

/** Destinations that are counted one by one; the others share one count. */
const maxDestinations = 100;

/** A decision as often as it was made. */
export interface CountedDecision {
  readonly decision: ConnectionDecision;
  readonly count: number;
}

/** The boundary's decisions, each with the number of times that it was made. */
export class DecisionTally {
  readonly #counted = new Map<string, { readonly decision: ConnectionDecision; count: number }>();

  /** @param othersReason the reason in the decision that sums up those beyond the first hundred destinations. */
  constructor(readonly othersReason: string) {}

  has(decision: ConnectionDecision): boolean {
    return this.#counted.has(keyOf(decision));
  }

  /** @param count how often it was made. */
  add(decision: ConnectionDecision, count = 1): void {
    const isListed = this.has(decision) || this.#counted.size < maxDestinations;
    const { allowed } = decision;
    const key = isListed ? keyOf(decision) : JSON.stringify([allowed]);
    const counted = this.#counted.get(key) ?? {
      decision: isListed ? decision : { target: "others", allowed, reason: this.othersReason },
      count: 0,
    };
    counted.count += count;
    this.#counted.set(key, counted);
  }

  /** All of them, once. */
  take(): readonly CountedDecision[] {
    const counted = [...this.#counted.values()];
    this.#counted.clear();
    return counted;
  }
}

function keyOf({ target, allowed, reason, failure }: ConnectionDecision): string {
  return JSON.stringify([allowed, target, reason, failure]);
}

/**
 * Counts the boundary's decisions, and folds a repeated one into one event with a count. Nothing slows the agent's
 * connections down, so while the reader is behind, decisions gather here, folded, instead of in its queue.
 */
export class Decisions {
  readonly #waiting = new DecisionTally(
    "more destinations than can have an event each; the receipt counts all of them",
  );
  #timer: NodeJS.Timeout | undefined;
  #behind = false;
  allowed = 0;
  /** Of the allowed ones. */
  failed = 0;
  refused = 0;

  constructor(
    /** Resolves when there is room for more. */
    readonly emit: (event: AgentEvent) => Promise<void> | undefined,
    /** Milliseconds that a decision waits for its repeats. */
    readonly foldMs = 200,
  ) {}

  /** @param count how often it was made. */
  record(decision: ConnectionDecision, count = 1): void {
    const { allowed, failure, isReported } = decision;
    if (!allowed) this.refused += count;
    else if (isReported !== true) this.allowed += count;
    if (failure !== undefined) this.failed += count;
    // Only consecutive repeats share an event, as long as each event can be sent.
    if (!this.#behind && !this.#waiting.has(decision)) this.flush();
    this.#waiting.add(decision, count);
    this.#timer ??= setTimeout(() => {
      if (!this.#behind) this.flush();
    }, this.foldMs);
  }

  /** Reports what waits, even if the reader has no room. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let room: Promise<void> | undefined;
    for (const { decision, count } of this.#waiting.take()) {
      const { target, allowed, reason, failure } = decision;
      room = this.emit({ type: "boundary_decision", target, allowed, reason, failure, count });
    }
    if (room === undefined) return;
    this.#behind = true;
    void room.then(() => {
      this.#behind = false;
      this.flush();
    });
  }
}
