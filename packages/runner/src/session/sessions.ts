import type { AcceptedPlan } from "@ambit/core";
import { AtCapacity, RequestInvalid, RunCancelled } from "@ambit/core";
import { projectOf, type RunRequest } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { type HideSecrets, secretsOf } from "../events/redaction/secrets.js";
import type { RunLimits } from "../limits.js";
import { tokens } from "../tokens.js";
import { type Borrower, fingerprintOf, Session } from "./session.js";

interface Kept {
  readonly session: Session;
  readonly expiry: NodeJS.Timeout;
}

/** A session as its project names it. */
export interface SessionName {
  readonly project: string | undefined;
  readonly session: string;
}

/** A session on loan to one run. */
export interface Loan {
  readonly session: Session;
  /** Gives it back: kept for the next run if it is named and the run went well, else closed. */
  release(keep: boolean): Promise<void>;
}

/** The named sessions between their runs. A run has its session to itself. */
@injectable()
export class Sessions {
  readonly #kept = new Map<string, Kept>();
  readonly #lent = new Set<string>();
  readonly #open = new Set<Session>();
  #closed = false;

  constructor(
    @inject(tokens.limits) readonly limits: RunLimits,
    @inject(tokens.log) readonly log: Log,
    @inject(tokens.hideSecrets) readonly hide: HideSecrets,
  ) {}

  /** The kept session of that name, if it was opened for the same sandbox and boundary; else a new one. */
  async borrow(
    request: RunRequest,
    plan: AcceptedPlan,
    borrower: Borrower & { readonly signal: AbortSignal },
  ): Promise<Loan> {
    const { signal } = borrower;
    const key = keyOf(request.sessionId, projectOf(request));
    const secrets = secretsOf(request);
    if (key === undefined) return this.#lend(await this.#openNew(plan, secrets, signal), borrower, undefined);
    if (this.#lent.has(key)) throw new AtCapacity(`Session '${request.sessionId}' is busy with another run.`);
    this.#lent.add(key);
    try {
      const kept = this.#take(key);
      if (kept !== undefined && canGoOn(kept, plan, secrets)) {
        kept.remember(secrets, this.hide);
        return this.#lend(kept, borrower, key);
      }
      if (kept !== undefined) await this.#discard(kept);
      return this.#lend(await this.#openNew(plan, secrets, signal), borrower, key);
    } catch (error) {
      this.#lent.delete(key);
      throw error;
    }
  }

  /** Those that are open here, lent ones included. */
  get names(): readonly SessionName[] {
    return [...this.#lent, ...this.#kept.keys()].map(nameOf);
  }

  /** How many are open, lent ones included. */
  get count(): number {
    return this.#open.size;
  }

  /** Ends a kept session. False when there is none of that name; a lent one is refused. */
  async end(sessionId: string, project: string | undefined): Promise<boolean> {
    const key = keyOf(sessionId, project);
    if (key === undefined) {
      throw new RequestInvalid([{ path: "sessionId", message: "must not be blank" }]);
    }
    const kept = this.#take(key);
    if (kept !== undefined) await this.#discard(kept);
    return kept !== undefined;
  }

  /** Closes every session, lent ones included, and keeps none from now on. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const { expiry } of this.#kept.values()) clearTimeout(expiry);
    this.#kept.clear();
    await Promise.all([...this.#open].map((session) => this.#discard(session)));
  }

  async #openNew(plan: AcceptedPlan, secrets: readonly string[], signal: AbortSignal): Promise<Session> {
    if (this.#closed) throw new RunCancelled("The runner is shutting down.");
    const session = await Session.open(plan, this.log, this.limits.closeMs, signal);
    session.remember(secrets, this.hide);
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
        if (key !== undefined) this.#lent.delete(key);
        if (key !== undefined && keep && !this.#closed && this.limits.sessions > 0)
          await this.#keep(key, session);
        else await this.#discard(session);
      },
    };
  }

  async #keep(key: string, session: Session): Promise<void> {
    const expiry = setTimeout(() => {
      this.#kept.delete(key);
      this.#discard(session).catch((error: unknown) =>
        this.log.error({ error }, "an expired session didn't close"),
      );
    }, this.limits.sessionTtlMs);
    expiry.unref();
    this.#kept.set(key, { session, expiry });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size <= this.limits.sessions || oldest === undefined) return;
    const evicted = this.#take(oldest);
    if (evicted !== undefined) await this.#discard(evicted);
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

/** Another boundary is another sandbox, and one that failed holds none. Nothing that was kept is carried over. */
function canGoOn(kept: Session, plan: AcceptedPlan, secrets: readonly string[]): boolean {
  return kept.failure === undefined && kept.fingerprint === fingerprintOf(plan) && kept.mayRemember(secrets);
}

/** Undefined for a session of one run alone. Two projects' sessions of equal id have different keys. */
function keyOf(sessionId: string | undefined, project: string | undefined): string | undefined {
  if (sessionId === undefined || sessionId.trim() === "") return undefined;
  return JSON.stringify([project ?? null, sessionId]);
}

function nameOf(key: string): SessionName {
  const [project, session]: [string | null, string] = JSON.parse(key);
  return { project: project ?? undefined, session };
}
