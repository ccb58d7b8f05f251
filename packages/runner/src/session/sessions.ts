import {
  type AcceptedPlan,
  AtCapacity,
  carriedBy,
  messageOf,
  NotFound,
  RequestInvalid,
  RunCancelled,
  SessionInUse,
  SnapshotFailed,
  stillVisible,
} from "@ambit/core";
import { projectOf, type RunRequest, waitsForSession } from "@ambit/core/contract";
import { type Log, unlessAborted } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { settlesWithin } from "../lifetime/scope.js";
import type { RunLimits } from "../limits.js";
import type { CredentialRefreshService, HideSecrets, SessionState } from "../operator.js";
import { type RunnerServices, tokens } from "../tokens.js";
import { neededBy, nextSandbox, takeOver, unwritable, whyWithoutHome } from "./next-sandbox.js";
import {
  type Borrower,
  keyOf,
  LostFiles,
  lostBecause,
  lostSessionSchema,
  lostWarning,
  nameOf,
  openSession,
  Session,
  type SessionHolding,
  type SessionKeeper,
  type SessionName,
  type SuspendedSession,
  sessionFingerprintOf,
  suspendedSessionSchema,
  type Visit,
} from "./session.js";

interface Kept {
  readonly session: Session;
  readonly expiry: NodeJS.Timeout;
}

/** One use of a session, which excludes every other. */
interface Use {
  /** Resolves when the session is free again. */
  readonly end: PromiseWithResolvers<void>;
  /** What uses it, for those that it keeps out. Undefined for a run. */
  readonly user?: string;
  /** Ends the use. Undefined for one that ends by itself, or as its run does. */
  readonly interrupt?: AbortController;
  /** Resolves when the session is used no more, and only its state is to be stored. Undefined for a run. */
  readonly acted?: Promise<void>;
  /** Whether its session was ended without it, since it didn't end in time. */
  isAbandoned?: boolean;
  /** Undefined until it is open. */
  session?: Session;
}

/** A session while one run has it. */
export interface Loan {
  readonly session: Session;
  /**
   * Returns it: kept for the next run if it is named, else closed.
   * @param lost why no other run may have its sandbox. Default: the next run of its name gets it.
   */
  release(lost?: string): Promise<void>;
  /** Its workspace is whole: from now on it's kept, also where this runner is lost. */
  filled(): Promise<void>;
}

/** A run that asks for its session. */
export interface BorrowingRun extends Borrower {
  readonly signal: AbortSignal;
  /** Every credential of the request. */
  readonly secrets: readonly string[];
  readonly warn: (message: string) => void;
  /** Does something that has a time limit of its own. */
  readonly untimed: <Result>(step: () => Promise<Result>) => Promise<Result>;
  /** A session with an agent that was started ahead. Default: none. */
  readonly claim?: (() => Promise<Session | undefined>) | undefined;
  /** What a new sandbox begins with. Default: it is empty. */
  readonly layer?: string | undefined;
}

/** A session that wasn't open here. */
interface OpenedSession {
  readonly session: Session;
  /** Why the files of the last session of this name are lost. Default: they aren't. */
  readonly lost?: string | undefined;
  /** Deletes what the session was continued from. Default: nothing is to be deleted. Never rejects. */
  readonly discardKept?: () => Promise<void>;
}

interface Opening {
  readonly signal: AbortSignal;
  readonly claim?: (() => Promise<Session | undefined>) | undefined;
  readonly layer?: string | undefined;
}

/** The named sessions between their runs. A session has one run at a time. */
@injectable()
export class Sessions {
  readonly #kept = new Map<string, Kept>();
  /** Those that a run has, or that are being copied. */
  readonly #inUse = new Map<string, Use>();
  readonly #open = new Set<Session>();
  /** Those that are being closed, or packed for the next runner. */
  readonly #ending = new Map<string, number>();
  /** Each settles when a loan has been returned. A run that ends waits for that only up to its time limit. */
  readonly #loans = new Set<Promise<void>>();
  readonly #lost = new LostFiles();
  /** What renews the credentials of sessions, and hides their new values from the log. */
  readonly #refresh: { readonly service: CredentialRefreshService; readonly hide: HideSecrets };
  #isLeaving = false;
  #closed = false;
  /** Set where sessions are kept beyond this process. */
  keeper: SessionKeeper | undefined;

  constructor(
    @inject(tokens.limits) private readonly limits: RunLimits,
    @inject(tokens.log) private readonly log: Log,
    @inject(tokens.services) private readonly services: RunnerServices,
  ) {
    this.#refresh = { service: services.credentialRefresh, hide: services.hideSecrets };
  }

  /**
   * The session of that name: in its sandbox, or in a new one that has its files where its own can't enforce the plan.
   * A new one where there is none; the run is warned if there was one whose files are lost.
   *
   * A run that may wait for it (`whenBusy`) gets it when it is free.
   * @throws SessionInUse, AtCapacity; SnapshotFailed where the files can't be moved, and the session stays as it is
   */
  async borrow(request: RunRequest, plan: AcceptedPlan, borrower: BorrowingRun): Promise<Loan> {
    const { secrets } = borrower;
    const key = keyOf(request.sessionId, projectOf(request));
    if (key === undefined)
      return this.#lend(await this.#openNew(plan, secrets, borrower), borrower, undefined);
    for (let inUse = this.#inUse.get(key); inUse !== undefined; inUse = this.#inUse.get(key)) {
      if (!waitsForSession(request)) throw new SessionInUse(request.sessionId ?? "", inUse.user);
      const { promise } = inUse.end;
      await borrower.untimed(() => unlessAborted(borrower.signal, () => promise));
    }
    requireRoomFor(key, [...this.#kept.keys()], this.limits);
    const use = this.#occupy(key);
    try {
      const session = await this.#next(key, plan, borrower);
      use.session = session;
      for (const visit of session.visits) borrower.warn(visitWarning(visit));
      session.visits = [];
      session.hadVisibleCredentials ||= visibleCredentials(request, plan).length > 0;
      return this.#lend(session, borrower, key);
    } catch (error) {
      this.#free(key);
      throw error;
    }
  }

  #occupy(key: string, facts: Omit<Partial<Use>, "end"> = {}): Use {
    const use: Use = { end: Promise.withResolvers(), ...facts };
    this.#inUse.set(key, use);
    return use;
  }

  #free(key: string): void {
    const inUse = this.#inUse.get(key);
    this.#inUse.delete(key);
    inUse?.end.resolve();
  }

  async #next(key: string, plan: AcceptedPlan, borrower: BorrowingRun): Promise<Session> {
    const { secrets } = borrower;
    const present = this.#take(key);
    const holding = this.keeper?.holding(nameOf(key));
    // From an earlier hold: another runner has had the session in between.
    const isOurs = present !== undefined && present.fence === holding?.fence;
    if (present === undefined || !isOurs) {
      if (present !== undefined) await this.#discard(present);
      return await this.#begin(key, plan, borrower, holding, this.#lost.of(key));
    }
    // The record of this runner is about the sandbox that is open here.
    const from = holding && { fence: holding.fence };
    const next = nextSandbox(present, neededBy(plan, sessionFingerprintOf(plan), secrets));
    switch (next.how) {
      case "reuse":
        present.secrets.remember(secrets, this.services.hideSecrets);
        return present;
      case "lost":
        await this.#discard(present);
        return await this.#begin(key, plan, borrower, from, present.isEmpty ? undefined : next.why);
      case "refuse":
        await this.#keepOrEnd(key, present);
        throw cannotMove(next.why);
      case "move":
        try {
          const moved = await this.#move(present, plan, borrower, { from, withoutHome: next.withoutHome });
          await this.#announce(key, moved, holding);
          await this.#discard(present);
          return moved;
        } catch (error) {
          await this.#keepOrEnd(key, present);
          throw error;
        }
    }
  }

  #keepOrEnd(key: string, session: Session): Promise<void> {
    return this.#closed ? this.#end(session, key) : this.#keep(key, session);
  }

  /** A session that isn't open here. @param lost why the files of the last one of this name are lost. Default: they aren't. */
  async #begin(
    key: string,
    plan: AcceptedPlan,
    borrower: BorrowingRun,
    holding: SessionHolding | undefined,
    lost: string | undefined,
  ): Promise<Session> {
    const opened = await this.#openNamed(key, plan, borrower, holding);
    const reason = opened.lost ?? lost;
    opened.session.lost = reason;
    await this.#announce(key, opened.session, holding);
    if (reason !== undefined) borrower.warn(lostWarning(reason));
    this.#lost.delete(key);
    await opened.discardKept?.();
    return opened.session;
  }

  /** Opens a new sandbox and copies the session's files into it. The earlier one stays open. @throws SnapshotFailed */
  async #move(
    kept: Session,
    plan: AcceptedPlan,
    borrower: BorrowingRun,
    {
      from,
      withoutHome,
    }: { readonly from: SessionHolding | undefined; readonly withoutHome: string | undefined },
  ): Promise<Session> {
    const { snapshots } = this.services.workspaces;
    if (snapshots === undefined) throw cannotMove("this runner has no service for workspaces");
    const { signal, untimed } = borrower;
    const opening = { ...borrower, claim: undefined, layer: undefined };
    const moved = await this.#openNew(plan, borrower.secrets, opening, from?.fence);
    try {
      if (!kept.isEmpty)
        await untimed(async () => {
          if (!(await kept.endProcesses(this.limits.closeMs)))
            throw cannotMove("processes in its sandbox could not be ended");
          const part = movedPart(kept, withoutHome);
          if (part !== undefined) await snapshots.copy(kept.asSource, moved.asSource, signal, part);
        });
      signal.throwIfAborted();
    } catch (error) {
      await this.#discard(moved);
      signal.throwIfAborted();
      throw error instanceof SnapshotFailed ? cannotMove(error.message, error) : error;
    }
    moved.isEmpty = kept.isEmpty;
    moved.commit = kept.commit;
    moved.lost = kept.lost;
    moved.visits = kept.visits;
    this.#continue(moved, kept.state, { withoutHome, plan, dropped: kept.dropped });
    moved.hadVisibleCredentials = withoutHome === undefined && kept.hadVisibleCredentials;
    if (withoutHome !== undefined && !kept.isEmpty) borrower.warn(homeWarning(withoutHome));
    return moved;
  }

  /** What a new session has of an earlier one besides its files. */
  #continue(
    session: Session,
    { conversation, userMessages, secrets }: SessionState,
    {
      withoutHome,
      plan,
      dropped,
    }: {
      readonly withoutHome: string | undefined;
      readonly plan: AcceptedPlan;
      readonly dropped: string | undefined;
    },
  ): void {
    session.userMessages = userMessages;
    // Its processes ended with the earlier sandbox.
    session.wasCutOff = true;
    // What it copied may contain what was readable then.
    session.secrets.remember(secrets, this.services.hideSecrets);
    session.conversation = withoutHome === undefined ? conversation : undefined;
    session.dropped = withoutHome ?? dropped;
    if (conversation !== undefined && conversation.harness !== plan.harness.actor.id)
      session.dropped = `the agent ${conversation.harness} had it`;
  }

  /** The sessions that are open here, including those in use, and those that this runner still ends. */
  get names(): readonly SessionName[] {
    return [...new Set([...this.#inUse.keys(), ...this.#kept.keys(), ...this.#ending.keys()])].map(nameOf);
  }

  /** The number of open sessions, including those in use, and of processes in their sandboxes. */
  get open(): { readonly sessions: number; readonly processes: number } {
    const processes = [...this.#open].reduce((sum, session) => sum + session.processes.count, 0);
    return { sessions: this.#open.size, processes };
  }

  /** Ends an idle session, and first what a person does with it. False if there is none of that name. */
  async end(sessionId: string, project: string | undefined): Promise<boolean> {
    const key = keyOf(sessionId, project);
    if (key === undefined) {
      throw new RequestInvalid([{ path: "sessionId", message: "must not be blank" }]);
    }
    const visited = await this.#interrupt(key, "The session was ended.");
    const idle = this.#take(key);
    this.#lost.delete(key);
    if (idle !== undefined) await this.#end(idle, key);
    return idle !== undefined || visited;
  }

  /**
   * Does something with an idle session, which no run gets meanwhile. Undefined if there is none of that name here.
   * @param use what does it, for the runs that it keeps out, and how it is ended with the session or this runner
   * @throws RequestInvalid, SessionInUse; what `act` throws
   */
  async using<Result>(
    sessionId: string,
    project: string | undefined,
    act: (session: Session) => Promise<Result>,
    use: Pick<Use, "user" | "interrupt"> = {},
  ): Promise<Result | undefined> {
    const key = keyOf(sessionId, project);
    if (key === undefined) throw new RequestInvalid([{ path: "sessionId", message: "must not be blank" }]);
    const inUse = this.#inUse.get(key);
    if (inUse !== undefined) throw new SessionInUse(sessionId, inUse.user);
    const idle = this.#kept.get(key)?.session;
    const isOurs =
      idle !== undefined && idle.fence === (this.keeper?.holding(nameOf(key))?.fence ?? idle.fence);
    if (!isOurs || idle.failure !== undefined) return undefined;
    this.#take(key);
    const acted = Promise.withResolvers<void>();
    const occupied = this.#occupy(key, { ...use, session: idle, acted: acted.promise });
    let isHeld = true;
    try {
      isHeld = await this.#hold(key, idle);
      return isHeld ? await act(idle) : undefined;
    } finally {
      acted.resolve();
      if (occupied.isAbandoned !== true) await this.#returnUsed(key, idle, isHeld);
    }
  }

  /** Takes a session back after a use. @param isHeld whether no other runner has it by then */
  async #returnUsed(key: string, idle: Session, isHeld: boolean): Promise<void> {
    const isOurs = isHeld && (await this.#keepRecord(key, idle));
    this.#free(key);
    const { failure } = idle;
    if (!isOurs) await this.#discard(idle);
    else if (failure !== undefined) await this.#end(idle, key, lostBecause.failed(failure));
    else if (idle.isClosed) await this.#end(idle, key, lostBecause.abandoned);
    else await this.#keepOrEnd(key, idle);
  }

  /** No other runner gets an idle session meanwhile. False if one has it already. @throws StoreFailed */
  async #hold(key: string, { fence, record }: Session): Promise<boolean> {
    if (this.keeper === undefined || fence === undefined || record === undefined) return true;
    return await this.keeper.keep(nameOf(key), fence, record, "owner_lost");
  }

  /**
   * The session of that name, where it is open here: kept, or with the run that has it. What is done with it is done beside that
   * run, and ends with the sandbox.
   * @throws RequestInvalid
   */
  opened(sessionId: string, project: string | undefined): Session | undefined {
    const key = keyOf(sessionId, project);
    if (key === undefined) throw new RequestInvalid([{ path: "sessionId", message: "must not be blank" }]);
    const session = this.#inUse.get(key)?.session ?? this.#kept.get(key)?.session;
    const isOurs =
      session !== undefined && session.fence === (this.keeper?.holding(nameOf(key))?.fence ?? session.fence);
    return isOurs && session.failure === undefined && !session.isClosed ? session : undefined;
  }

  /** From now on, a session that another runner can continue is left to it. */
  leave(): void {
    this.#isLeaving = this.keeper !== undefined;
  }

  /** Ends what persons do in sessions, which are then idle. */
  async interrupt(): Promise<void> {
    const reason = "The runner is shutting down.";
    await Promise.all([...this.#inUse.keys()].map((key) => this.#interrupt(key, reason)));
  }

  /** The same in the sandboxes of one plugin, without a wait. */
  interruptIn(plugin: string, reason: Error): void {
    for (const { session, interrupt } of this.#inUse.values())
      if (session?.plugin === plugin) interrupt?.abort(reason);
  }

  /**
   * Resolves when the session is free again. One whose use doesn't end in time is ended without it. At once for a use that ends
   * by itself.
   * @returns whether there was a use to end
   */
  async #interrupt(key: string, why: string): Promise<boolean> {
    const use = this.#inUse.get(key);
    if (use?.interrupt === undefined || use.acted === undefined || use.session === undefined) return false;
    use.interrupt.abort(new RunCancelled(why));
    if (await settlesWithin(use.acted, this.limits.closeMs)) await use.end.promise;
    else {
      use.isAbandoned = true;
      await this.#end(use.session, key);
      this.#free(key);
    }
    return true;
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
    // The loans of runs that have ended.
    await settlesWithin(Promise.all(this.#loans), this.limits.closeMs);
    const late = [...this.#inUse.keys()];
    await Promise.all([...this.#open].map((session) => this.#discard(session)));
    for (const key of late) await this.#leaveLost(key, lostBecause.stopped);
  }

  /** Closes every sandbox at once, while its run ends too. One that another runner can continue is left to it. */
  async abandon(): Promise<void> {
    for (const { interrupt } of this.#inUse.values())
      interrupt?.abort(new RunCancelled("The runner can't act any more."));
    for (const key of [...this.#kept.keys()]) {
      const session = this.#take(key);
      if (session?.isMovable === true) this.keeper?.onClosed(nameOf(key));
      else if (session?.isEmpty === false) this.#lost.add(key, lostBecause.abandoned);
    }
    await Promise.all(
      [...this.#open].map(async (session) => {
        this.#open.delete(session);
        await (session.isMovable ? session.leave() : session.close());
      }),
    );
  }

  async #openNamed(
    key: string,
    plan: AcceptedPlan,
    borrower: BorrowingRun,
    holding: SessionHolding | undefined,
  ): Promise<OpenedSession> {
    const { log, limits } = this;
    const { signal, secrets } = borrower;
    if (holding === undefined) return { session: await this.#openNew(plan, secrets, borrower) };
    const openNew = async (lost?: string) => ({
      session: await this.#openNew(plan, secrets, borrower, holding.fence),
      lost,
    });
    if (holding.record === undefined) return await openNew();
    const lost = lostSessionSchema.safeParse(holding.record);
    if (lost.success) return await openNew(lost.data.lost);
    const suspended = suspendedSessionSchema.safeParse(holding.record);
    if (suspended.success) {
      const resumed = await this.#resume(key, suspended.data, plan, borrower, holding.fence);
      return typeof resumed === "string" ? await openNew(resumed) : resumed;
    }
    const refresh = this.#refresh;
    const { closeMs } = limits;
    const taken = await takeOver(holding, { plan, secrets, log, closeMs, refresh, signal });
    return taken instanceof Session
      ? { session: await this.#add(taken, secrets) }
      : await openNew(taken.lost);
  }

  /**
   * Puts the files of a session whose server stopped into a new sandbox.
   * @returns why they are lost, where they are
   * @throws SnapshotFailed, StoreFailed where they stay for another attempt
   */
  async #resume(
    key: string,
    kept: SuspendedSession,
    plan: AcceptedPlan,
    borrower: BorrowingRun,
    fence: number,
  ): Promise<OpenedSession | string> {
    const { suspended } = this.services.workspaces;
    const { secrets, signal, untimed } = borrower;
    const { project } = nameOf(key);
    if (suspended === undefined) return "this server doesn't keep files of sessions";
    const needed = neededBy(plan, sessionFingerprintOf(plan), secrets);
    if (needed.filesystem === "readonly" || needed.filesystem === "off")
      throw cannotMove(unwritable(needed.filesystem));
    const session = await this.#openNew(plan, secrets, { ...borrower, claim: undefined }, fence);
    const present = {
      ...kept,
      backend: kept.sandbox,
      // Its secrets are kept with its files.
      secrets: { all: new Set(kept.hadVisibleCredentials ? [""] : []) },
    };
    const withoutHome = whyWithoutHome(present, needed);
    const part = withoutHome === undefined ? "all" : "workspace";
    try {
      const { state } = await untimed(() =>
        suspended.restore(kept.suspended, project, session.asSource, signal, part),
      );
      if (!session.secrets.mayRemember(state.secrets)) {
        await this.#discard(session);
        return "its runs have had more credentials than are kept apart";
      }
      session.isEmpty = false;
      session.visits = kept.visits ?? [];
      this.#continue(session, state, { withoutHome, plan, dropped: undefined });
      session.hadVisibleCredentials = withoutHome === undefined && kept.hadVisibleCredentials;
      if (withoutHome !== undefined) borrower.warn(homeWarning(withoutHome));
    } catch (error) {
      await this.#discard(session);
      signal.throwIfAborted();
      if (error instanceof NotFound) return "its server stopped, and its files aren't kept any more";
      throw error;
    }
    const discardKept = () =>
      suspended.delete(kept.suspended, project).catch((error: unknown) => {
        this.log.warn({ error }, "kept files of a session that goes on could not be deleted");
      });
    return { session, discardKept };
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
    const refresh = this.#refresh;
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
    session.secrets.remember(secrets, this.services.hideSecrets);
    this.#open.add(session);
    if (!this.#closed) return session;
    await this.#discard(session);
    throw new RunCancelled("The runner is shutting down.");
  }

  #lend(session: Session, borrower: Borrower, key: string | undefined): Loan {
    const takeBack = session.lend(borrower);
    const returned = Promise.withResolvers<void>();
    if (key !== undefined) {
      this.#loans.add(returned.promise);
      void returned.promise.then(() => this.#loans.delete(returned.promise));
    }
    let released = false;
    return {
      session,
      filled: async () => {
        if (!session.isEmpty) return;
        session.isEmpty = false;
        if (key !== undefined) await this.#keepRecord(key, session);
      },
      release: async (lost) => {
        if (released) return;
        released = true;
        takeBack();
        if (key === undefined) return this.#discard(session);
        await this.#takeBack(session, key, lost).finally(returned.resolve);
      },
    };
  }

  async #takeBack(session: Session, key: string, lost: string | undefined): Promise<void> {
    // What was put into it so far may be half of what the run asked for.
    const isWhole = lost === undefined && !session.isEmpty;
    const isKept = isWhole && (!session.isInPlace || (await session.endProcesses(this.limits.closeMs)));
    const isHeld = !isKept || (await this.#keepRecord(key, session));
    this.#free(key);
    if (!isHeld) await this.#discard(session);
    else if (!isKept) await this.#end(session, key, lost);
    else if (this.#closed) await this.#end(session, key);
    else if (this.limits.sessions > 0) await this.#keep(key, session);
    else await this.#end(session, key, lostBecause.notKept);
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
      if (await keeper.keep(nameOf(key), fence, record, whenOf(session))) return;
      throw new RunCancelled("Another replica has this session now.");
    } catch (error) {
      await this.#discard(session);
      throw error;
    }
  }

  /** Once its workspace is filled, and after a run: stores what the next run needs, on any runner. False if another runner has the session meanwhile. */
  async #keepRecord(key: string, session: Session): Promise<boolean> {
    const { fence, record } = session;
    if (this.keeper === undefined || fence === undefined || record === undefined) return true;
    try {
      return await this.keeper.keep(nameOf(key), fence, record, whenOf(session));
    } catch (error) {
      this.log.warn(
        { error },
        "a session's state could not be stored: another replica would have an older one",
      );
      return true;
    }
  }

  /**
   * Closes it, unless this runner is leaving and another one can continue it.
   * @param lost why its files are lost, for the next run of the name. Default: the loss is not reported.
   */
  async #end(session: Session, key: string, lost?: string): Promise<void> {
    this.#ending.set(key, (this.#ending.get(key) ?? 0) + 1);
    try {
      await this.#endNow(session, key, lost);
    } finally {
      const left = (this.#ending.get(key) ?? 0) - 1;
      if (left > 0) this.#ending.set(key, left);
      else this.#ending.delete(key);
    }
  }

  async #endNow(session: Session, key: string, lost: string | undefined): Promise<void> {
    const { keeper } = this;
    if (session.isLeft || (this.#isLeaving && lost === undefined && session.isMovable)) {
      keeper?.onClosed(nameOf(key));
      this.#open.delete(session);
      await session.leave();
      return;
    }
    let reason = lost;
    if (this.#isLeaving && lost === undefined && !session.isEmpty) {
      const failed = await this.#suspend(session, key);
      if (failed === undefined) {
        await this.#discard(session);
        return;
      }
      reason = `${lostBecause.stopped} (${failed})`;
    }
    await this.#discard(session);
    if (session.isEmpty) reason = session.lost;
    await this.#leaveLost(key, reason);
  }

  /** It was closed. @param reason why its files are lost, for the next run of the name. Default: the loss is not reported. */
  async #leaveLost(key: string, reason: string | undefined): Promise<void> {
    const { keeper } = this;
    if (keeper === undefined && reason !== undefined) this.#lost.add(key, reason);
    await keeper
      ?.closed(nameOf(key), reason === undefined ? undefined : { lost: reason })
      .catch((error: unknown) => {
        this.log.warn({ error }, "that a session was closed could not be stored");
      });
  }

  /** Keeps its files for the next runner. Never rejects. @returns why that failed */
  async #suspend(session: Session, key: string): Promise<string | undefined> {
    const { keeper } = this;
    const { suspended } = this.services.workspaces;
    const { fence, fingerprint, hadVisibleCredentials, backend, visits } = session;
    if (keeper === undefined || fence === undefined || suspended?.isKept !== true)
      return "no plugin keeps files";
    if (session.isInPlace) return "its workspace is a folder of the user's, which stays as it is";
    const name = nameOf(key);
    try {
      if (!(await session.endProcesses(this.limits.closeMs))) return "its processes could not be ended";
      const from = { ...session.asSource, ...name };
      const { id } = await suspended.take(from, session.state, new AbortController().signal);
      const visited = visits.length === 0 ? {} : { visits };
      const record = { suspended: id, sandbox: backend, fingerprint, hadVisibleCredentials, ...visited };
      // Otherwise, another runner has the session, and what was kept here grows old.
      if (await keeper.keep(name, fence, record)) keeper.onClosed(name);
      return undefined;
    } catch (error) {
      this.log.warn({ error }, "the files of an idle session could not be kept for the next server");
      return messageOf(error);
    }
  }

  async #keep(key: string, session: Session): Promise<void> {
    const { sessionTtlMs } = this.limits;
    const expiry = setTimeout(() => {
      this.#kept.delete(key);
      this.#end(session, key, lostBecause.unused(sessionTtlMs)).catch((error: unknown) =>
        this.log.error({ error }, "an expired session didn't close"),
      );
    }, sessionTtlMs);
    expiry.unref();
    this.#kept.set(key, { session, expiry });
    const keys = evictedFor(key, [...this.#kept.keys()], this.limits);
    const evicted = keys.map((one) => [one, this.#take(one)] as const);
    for (const [one, left] of evicted)
      if (left !== undefined) await this.#end(left, one, lostBecause.evicted(one));
  }

  #take(key: string): Session | undefined {
    const entry = this.#kept.get(key);
    this.#kept.delete(key);
    clearTimeout(entry?.expiry);
    return entry?.session;
  }

  async #discard(session: Session): Promise<void> {
    this.#open.delete(session);
    await session.close();
  }
}

/** When another runner may have it: files that only outlive this runner are its own while it lives. */
const whenOf = ({ isMovable }: Session) => (isMovable ? "idle" : "owner_lost");

/** What of a session's files a new sandbox gets. Its workspace is there already where it is a folder of the user's. Pure. */
function movedPart({ isInPlace }: Pick<Session, "isInPlace">, withoutHome: string | undefined) {
  if (withoutHome === undefined) return isInPlace ? "home" : "all";
  return isInPlace ? undefined : "workspace";
}

function cannotMove(why: string, cause?: unknown): SnapshotFailed {
  const message = `The session can't go on in the new sandbox that this request's boundary, agent or credentials need: ${why} It stays as it is: send the request with the settings of the run before, or in another session, or end this one first (POST /kill).`;
  return new SnapshotFailed(message.replace(/([^.!?]) It stays/, "$1. It stays"), { cause });
}

function homeWarning(why: string): string {
  return `is a session that goes on in a new sandbox, with its workspace and without the home of its agent: ${why}`;
}

function visitWarning({ visitor, begunAt, endedAt }: Visit): string {
  const [from, to] = [begunAt, endedAt].map((at) => new Date(at).toISOString());
  return `is a session in which ${visitor} had a terminal, from ${from} to ${to}: its files may have changed since its last run`;
}

type SessionLimits = Pick<RunLimits, "sessions" | "sessionsPerProject">;

/**
 * Called before a session is opened. Its project's own sessions may make room for it, those of others never.
 *
 * @param kept the keys of the sessions between their runs.
 * @throws AtCapacity
 */
function requireRoomFor(key: string, kept: readonly string[], { sessions }: SessionLimits): void {
  if (sessions === 0 || kept.length < sessions || kept.includes(key)) return;
  if (kept.some(isOfProjectOf(key))) return;
  throw new AtCapacity(
    `Runner at capacity (${sessions} sessions are kept): end a session that is no longer needed, or send the run without a sessionId.`,
  );
}

/**
 * The sessions to end when this one is kept: of its project, the least recently used first. Where its project has no
 * other, all stay: there are never more than `sessions` and one for each concurrent run.
 *
 * @param kept the keys of the sessions between their runs with this one, the least recently used first.
 */
function evictedFor(key: string, kept: readonly string[], limits: SessionLimits): readonly string[] {
  const { sessions, sessionsPerProject = sessions } = limits;
  const others = kept.filter((one) => one !== key && isOfProjectOf(key)(one));
  const surplus = Math.max(kept.length - sessions, others.length + 1 - sessionsPerProject);
  return others.slice(0, Math.max(0, surplus));
}

function isOfProjectOf(key: string): (other: string) => boolean {
  const { project } = nameOf(key);
  return (other) => nameOf(other).project === project;
}

/** Names of the request's credentials that the agent can read in its sandbox. */
export function visibleCredentials(request: RunRequest, plan: AcceptedPlan): readonly string[] {
  return stillVisible(plan.harness.actor, request, [
    ...carriedBy(plan.gateway),
    ...plan.hidden.map(({ name }) => name),
  ]);
}
