import { projectOf, type RunRequest } from "@ambit/core/contract";
import type { SessionUse } from "@ambit/core/plugin";
import { FairMap } from "../lifetime/memory/fair-map.js";
import type { SessionKeeper, SessionName } from "../session/session-keeper.js";
import { Spent } from "./spent.js";

/** Sessions of all projects. */
const maxSessions = 10_000;
const retentionMs = 86_400_000;

/**
 * What each named session has used of its models. It outlives the session itself: one that is closed, because its
 * budget was exceeded or whose time was up, doesn't start again from zero. Kept for a day after the last run, here and
 * in the store.
 */
export class SessionSpending {
  readonly #sessions = new FairMap<{ readonly spent: Spent; lastUsed: number }>(maxSessions);
  /** Set where sessions are kept beyond this process. */
  keeper: Pick<SessionKeeper, "use"> | undefined;

  constructor(readonly now: () => number = Date.now) {}

  /** A run without a session has its own. */
  of(request: RunRequest): SessionAccount {
    const { sessionId } = request;
    if (sessionId === undefined || sessionId.trim() === "") return new SessionAccount(new Spent());
    const project = projectOf(request);
    this.#forget(project);
    const name = { project, session: sessionId };
    const known = this.#sessions.get(project, sessionId) ?? { spent: new Spent(), lastUsed: 0 };
    known.lastUsed = this.now();
    this.#sessions.set(project, sessionId, known);
    return new SessionAccount(known.spent, this.keeper, name);
  }

  #forget(project: string | undefined): void {
    const oldest = this.now() - retentionMs;
    for (const [session, { lastUsed }] of this.#sessions.of(project)) {
      if (lastUsed > oldest) return;
      this.#sessions.delete(project, session);
    }
  }
}

/** One session's count, for one run of it. */
export class SessionAccount {
  #last: Promise<void> = Promise.resolve();

  constructor(
    readonly spent: Spent,
    readonly keeper?: Pick<SessionKeeper, "use">,
    readonly name?: SessionName,
  ) {}

  /**
   * Resolves once the store has what is counted here, and this process what other runners have counted. One exchange at
   * a time. @throws StoreFailed
   */
  exchange(): Promise<void> {
    const { keeper, name, spent } = this;
    if (keeper === undefined || name === undefined) return Promise.resolve();
    const exchange = async () => spent.raiseTo(await keeper.use(name, useOf(spent)));
    this.#last = this.#last.then(exchange, exchange);
    return this.#last;
  }
}

function useOf({ requests, input, cached, output, cost, granted }: Spent): SessionUse {
  return { requests, input, cached, output, granted, usd: cost ?? 0, isPriced: cost !== undefined };
}
