import type { AcceptedPlan } from "@ambit/core";
import { RequestInvalid, RunCancelled, SessionInUse } from "@ambit/core";
import { projectOf, type RunRequest } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import type { RunLimits } from "../limits.js";
import type { CredentialRefreshService, HideSecrets } from "../operator.js";
import { tokens } from "../tokens.js";
import { evictedFor, requireRoomFor } from "./room.js";
import { type Borrower, openSession, type Session } from "./session.js";
import type { SessionHolding, SessionKeeper } from "./session-keeper.js";
import { keyOf, nameOf, type SessionName } from "./session-name.js";
import { canGoOn, takeOver } from "./take-over.js";

interface Kept {
  readonly session: Session;
  readonly expiry: NodeJS.Timeout;
}

/** A session while one run has it. */
export interface Loan {
  readonly session: Session;
  /** Returns it: kept for the next run if it is named and the run succeeded, else closed. */
  release(keep: boolean): Promise<void>;
}

interface Opening {
  readonly signal: AbortSignal;
  readonly claim?: () => Promise<Session | undefined>;
  readonly layer?: string | undefined;
}

/** The named sessions between their runs. A session has one run at a time. */
@injectable()
export class Sessions {
  readonly #kept = new Map<string, Kept>();
  readonly #inUse = new Set<string>();
  readonly #open = new Set<Session>();
  #isLeaving = false;
  #closed = false;
  /** Set where sessions are kept beyond this process. */
  keeper: SessionKeeper | undefined;

  constructor(
    @inject(tokens.limits) private readonly limits: RunLimits,
    @inject(tokens.log) private readonly log: Log,
    @inject(tokens.hideSecrets) private readonly hide: HideSecrets,
    @inject(tokens.credentialRefresh) private readonly service: CredentialRefreshService,
  ) {}

  /** The kept session of that name, if it was opened for the same sandbox and boundary; else a new one. */
  async borrow(
    request: RunRequest,
    plan: AcceptedPlan,
    borrower: Borrower & {
      readonly signal: AbortSignal;
      /** Every credential of the request. */
      readonly secrets: readonly string[];
      readonly warn: (message: string) => void;
      /** A session with an agent that was started ahead. Default: none. */
      readonly claim?: () => Promise<Session | undefined>;
      /** What a new sandbox begins with. Default: it is empty. */
      readonly layer?: string | undefined;
    },
  ): Promise<Loan> {
    const { secrets } = borrower;
    const key = keyOf(request.sessionId, projectOf(request));
    if (key === undefined)
      return this.#lend(await this.#openNew(plan, secrets, borrower), borrower, undefined);
    if (this.#inUse.has(key)) throw new SessionInUse(request.sessionId ?? "");
    requireRoomFor(key, [...this.#kept.keys()], this.limits);
    this.#inUse.add(key);
    try {
      const kept = this.#take(key);
      const holding = this.keeper?.holding(nameOf(key));
      // From an earlier hold: another runner has had the session in between.
      const isOurs = kept !== undefined && kept.fence === holding?.fence;
      if (isOurs && canGoOn(kept, plan, secrets)) {
        kept.secrets.remember(secrets, this.hide);
        return this.#lend(kept, borrower, key);
      }
      if (kept !== undefined) await this.#discard(kept);
      // The record of this runner was about the sandbox that is now closed.
      const from = isOurs && holding !== undefined ? { fence: holding.fence } : holding;
      const opened = await this.#openNamed(plan, secrets, borrower, from);
      await this.#announce(key, opened, holding);
      return this.#lend(opened, borrower, key);
    } catch (error) {
      this.#inUse.delete(key);
      throw error;
    }
  }

  /** The sessions that are open here, including those in use. */
  get names(): readonly SessionName[] {
    return [...this.#inUse, ...this.#kept.keys()].map(nameOf);
  }

  /** The number of open sessions, including those in use, and of processes in their sandboxes. */
  get open(): { readonly sessions: number; readonly processes: number } {
    const processes = [...this.#open].reduce((sum, session) => sum + session.processes.count, 0);
    return { sessions: this.#open.size, processes };
  }

  /** Ends an idle session. False if there is none of that name. Throws for one in use. */
  async end(sessionId: string, project: string | undefined): Promise<boolean> {
    const key = keyOf(sessionId, project);
    if (key === undefined) {
      throw new RequestInvalid([{ path: "sessionId", message: "must not be blank" }]);
    }
    const kept = this.#take(key);
    if (kept !== undefined) await this.#end(kept, key);
    return kept !== undefined;
  }

  /**
   * Does something with an idle session, which no run gets meanwhile. Undefined if there is none of that name here.
   * @throws RequestInvalid, SessionInUse; what `act` throws
   */
  async using<Result>(
    sessionId: string,
    project: string | undefined,
    act: (session: Session) => Promise<Result>,
  ): Promise<Result | undefined> {
    const key = keyOf(sessionId, project);
    if (key === undefined) throw new RequestInvalid([{ path: "sessionId", message: "must not be blank" }]);
    if (this.#inUse.has(key)) throw new SessionInUse(sessionId);
    const kept = this.#kept.get(key)?.session;
    const isOurs =
      kept !== undefined && kept.fence === (this.keeper?.holding(nameOf(key))?.fence ?? kept.fence);
    if (!isOurs || kept.failure !== undefined) return undefined;
    this.#take(key);
    this.#inUse.add(key);
    try {
      return await act(kept);
    } finally {
      this.#inUse.delete(key);
      if (this.#closed || kept.failure !== undefined) await this.#end(kept, key);
      else await this.#keep(key, kept);
    }
  }

  /** From now on, a session that another runner can continue is left to it. */
  leave(): void {
    this.#isLeaving = this.keeper !== undefined;
  }

  /** Closes every session, including those in use, and keeps none from now on. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(
      [...this.#kept.keys()].map(async (key) => {
        const session = this.#take(key);
        if (session !== undefined) await this.#end(session, key);
      }),
    );
    await Promise.all([...this.#open].map((session) => this.#discard(session)));
  }

  /** Closes every sandbox at once, while its run ends too. One that another runner can continue is left to it. */
  async abandon(): Promise<void> {
    for (const key of [...this.#kept.keys()]) {
      const session = this.#take(key);
      if (session?.record !== undefined) this.keeper?.onClosed(nameOf(key));
    }
    await Promise.all(
      [...this.#open].map(async (session) => {
        this.#open.delete(session);
        await (session.record !== undefined ? session.leave() : session.close());
      }),
    );
  }

  async #openNamed(
    plan: AcceptedPlan,
    secrets: readonly string[],
    opening: Opening & { readonly warn: (message: string) => void },
    holding: SessionHolding | undefined,
  ): Promise<Session> {
    const { log, limits, hide, service } = this;
    const { signal, warn } = opening;
    if (holding === undefined) return this.#openNew(plan, secrets, opening);
    const refresh = { service, hide };
    const taken = await takeOver(holding, {
      plan,
      secrets,
      log,
      closeMs: limits.closeMs,
      refresh,
      signal,
      warn,
    });
    return taken === undefined
      ? this.#openNew(plan, secrets, opening, holding.fence)
      : this.#add(taken, secrets);
  }

  async #openNew(
    plan: AcceptedPlan,
    secrets: readonly string[],
    { signal, claim, layer }: Opening,
    fence?: number,
  ): Promise<Session> {
    if (this.#closed) throw new RunCancelled("The runner is shutting down.");
    // A sandbox that was opened without a fence can't be continued elsewhere.
    const claimed = fence === undefined ? await claim?.() : undefined;
    if (claimed !== undefined) return this.#add(claimed, secrets);
    const { hide, service } = this;
    const refresh = { service, hide };
    const origin = fence === undefined ? { refresh } : { fence, refresh };
    const opened = await openSession(plan, this.log, this.limits.closeMs, signal, { ...origin, layer });
    return this.#add(opened, secrets);
  }

  /** Whether a session of this request's name waits for its next run. */
  keeps(request: RunRequest): boolean {
    const key = keyOf(request.sessionId, projectOf(request));
    return key !== undefined && this.#kept.has(key);
  }

  async #add(session: Session, secrets: readonly string[]): Promise<Session> {
    session.secrets.remember(secrets, this.hide);
    this.#open.add(session);
    if (!this.#closed) return session;
    await this.#discard(session);
    throw new RunCancelled("The runner is shutting down.");
  }

  #lend(session: Session, borrower: Borrower, key: string | undefined): Loan {
    const takeBack = session.lend(borrower);
    let released = false;
    return {
      session,
      release: async (keep) => {
        if (released) return;
        released = true;
        takeBack();
        if (key === undefined) return this.#discard(session);
        const isHeld = !keep || (await this.#keepRecord(key, session));
        this.#inUse.delete(key);
        if (!isHeld) await this.#discard(session);
        else if (keep && !this.#closed && this.limits.sessions > 0) await this.#keep(key, session);
        else await this.#end(session, key);
      },
    };
  }

  /**
   * Called before a run gets it. @throws RunCancelled if another runner has the session meanwhile; what was opened is
   * closed
   */
  async #announce(key: string, session: Session, holding: SessionHolding | undefined): Promise<void> {
    const { keeper } = this;
    const { fence, record } = session;
    if (keeper === undefined || fence === undefined) return;
    if (record === undefined && holding?.record === undefined) return;
    try {
      if (await keeper.keep(nameOf(key), fence, record)) return;
      throw new RunCancelled("Another replica has this session now.");
    } catch (error) {
      await this.#discard(session);
      throw error;
    }
  }

  /** After a run: stores what the next run needs, on any runner. False if another runner has the session meanwhile. */
  async #keepRecord(key: string, { fence, record }: Session): Promise<boolean> {
    if (this.keeper === undefined || fence === undefined || record === undefined) return true;
    try {
      return await this.keeper.keep(nameOf(key), fence, record);
    } catch (error) {
      this.log.warn(
        { error },
        "a session's state could not be stored: another replica would have an older one",
      );
      return true;
    }
  }

  /** Closes it, unless this runner is leaving and another one can continue it. */
  async #end(session: Session, key: string): Promise<void> {
    const { keeper } = this;
    if (!session.isLeft && (!this.#isLeaving || session.record === undefined)) {
      await this.#discard(session);
      await keeper?.closed(nameOf(key)).catch((error: unknown) => {
        this.log.warn({ error }, "that a session was closed could not be stored");
      });
      return;
    }
    keeper?.onClosed(nameOf(key));
    this.#open.delete(session);
    await session.leave();
  }

  async #keep(key: string, session: Session): Promise<void> {
    const expiry = setTimeout(() => {
      this.#kept.delete(key);
      this.#end(session, key).catch((error: unknown) =>
        this.log.error({ error }, "an expired session didn't close"),
      );
    }, this.limits.sessionTtlMs);
    expiry.unref();
    this.#kept.set(key, { session, expiry });
    const keys = evictedFor(key, [...this.#kept.keys()], this.limits);
    const evicted = keys.map((one) => [one, this.#take(one)] as const);
    for (const [one, left] of evicted) if (left !== undefined) await this.#end(left, one);
  }

  #take(key: string): Session | undefined {
    const kept = this.#kept.get(key);
    this.#kept.delete(key);
    clearTimeout(kept?.expiry);
    return kept?.session;
  }

  async #discard(session: Session): Promise<void> {
    this.#open.delete(session);
    await session.close();
  }
}
