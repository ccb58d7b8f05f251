import { projectOf, type RunRequest } from "@ambit/core/contract";
import { Spent } from "./spent.js";

const mostSessions = 10_000;
const keptMs = 86_400_000;

/**
 * What each named session has used of its models. It outlives the session itself: one that is closed, because its budget
 * was exceeded or its time was up, doesn't begin anew. Kept in this process, for a day after the last run.
 */
export class SessionSpending {
  readonly #sessions = new Map<string, { readonly spent: Spent; lastUsed: number }>();

  constructor(readonly now: () => number = Date.now) {}

  /** A run without a session has its own. */
  of(request: RunRequest): Spent {
    const { sessionId } = request;
    if (sessionId === undefined || sessionId.trim() === "") return new Spent();
    this.#forget();
    const key = JSON.stringify([projectOf(request) ?? null, sessionId]);
    const known = this.#sessions.get(key) ?? { spent: new Spent(), lastUsed: 0 };
    known.lastUsed = this.now();
    // Moved to the end: the map's order is the order of use.
    this.#sessions.delete(key);
    this.#sessions.set(key, known);
    return known.spent;
  }

  #forget(): void {
    const oldest = this.now() - keptMs;
    for (const [key, { lastUsed }] of this.#sessions) {
      if (lastUsed > oldest && this.#sessions.size < mostSessions) return;
      this.#sessions.delete(key);
    }
  }
}
