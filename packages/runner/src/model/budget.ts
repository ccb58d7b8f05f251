/** What a run and its session use of their models, and the budget that limits it. */

import { BudgetExceeded, toAmbitError } from "@ambit/core";
import {
  type BudgetAmounts,
  type Budget as BudgetSettings,
  projectOf,
  type RunRequest,
  type Usage,
} from "@ambit/core/contract";
import { type ModelAdmission, type ModelUsage, type SessionUse, unlessAborted } from "@ambit/core/plugin";
import { approvalIn } from "../call/answer.js";
import type { Ask } from "../call/ask.js";
import { FairMap, FairSlots } from "../lifetime/fair-shares.js";
import type { OwnedScope } from "../lifetime/scope.js";
import type { SessionKeeper, SessionName } from "../session/session.js";

/** The usage of models by one run or one session. */
class Spent {
  requests = 0;
  input = 0;
  cached = 0;
  cacheWritten = 0;
  output = 0;
  reasoning = 0;
  /** US dollars; undefined once something without a price was used. */
  cost: number | undefined = 0;
  /** How many times the user has granted the budget again. */
  granted = 0;

  add({ input, cached, cacheWritten = 0, output, reasoning = 0, cost }: ModelUsage): void {
    this.input += input;
    this.cached += cached;
    this.cacheWritten += cacheWritten;
    this.output += output;
    this.reasoning += reasoning;
    this.cost = this.cost === undefined || cost === undefined ? undefined : this.cost + cost;
  }

  /** The same with further usage. */
  with(further: readonly ModelUsage[]): Spent {
    const sum = Object.assign(new Spent(), this);
    for (const usage of further) sum.add(usage);
    return sum;
  }

  /** Takes over the counts of others where they are higher. */
  raiseTo({ requests, input, cached, output, granted, usd, isPriced }: SessionUse): void {
    this.requests = Math.max(this.requests, requests);
    this.input = Math.max(this.input, input);
    this.cached = Math.max(this.cached, cached);
    this.output = Math.max(this.output, output);
    this.granted = Math.max(this.granted, granted);
    this.cost = this.cost === undefined || !isPriced ? undefined : Math.max(this.cost, usd);
  }

  get usage(): Usage {
    const { input, cached, cacheWritten, output, reasoning, cost } = this;
    const tokens = {
      input,
      cached,
      output,
      total: input + output,
      // Not every provider counts these: zero may mean that.
      ...(cacheWritten > 0 ? { cacheWritten } : {}),
      ...(reasoning > 0 ? { reasoning } : {}),
    };
    return cost === undefined || cost === 0 ? tokens : { ...tokens, cost };
  }
}

/** One amount of a budget, with its usage. */
interface BudgetUsage {
  /** As on the wire: `usd`, `tokens`, `requests`. */
  readonly what: keyof BudgetAmounts;
  readonly used: number;
  readonly limit: number;
}

/** Each amount of the budget with its usage. An unknown cost counts as all of it. Pure. */
function usedOf(amounts: BudgetAmounts, spent: Spent): readonly BudgetUsage[] {
  const used = {
    usd: spent.cost ?? Number.POSITIVE_INFINITY,
    tokens: spent.input + spent.output,
    requests: spent.requests,
  };
  return (["usd", "tokens", "requests"] as const).flatMap((what) => {
    const amount = amounts[what];
    return amount === undefined ? [] : [{ what, used: used[what], limit: amount * (1 + spent.granted) }];
  });
}

/** The first amount that leaves nothing for another request. Pure. */
function usedUp(amounts: BudgetAmounts, spent: Spent): BudgetUsage | undefined {
  return usedOf(amounts, spent).find(({ used, limit }) => used >= limit);
}

/** The first amount that was exceeded. Pure. */
function overdrawn(amounts: BudgetAmounts, spent: Spent): BudgetUsage | undefined {
  return usedOf(amounts, spent).find(({ used, limit }) => used > limit);
}

/** `0.52 of 0.5 usd`. Pure. */
function inWords({ what, used, limit }: BudgetUsage): string {
  const figure = (value: number) => (what === "usd" ? String(Number(value.toFixed(6))) : String(value));
  return `${figure(used)} of ${figure(limit)} ${what}`;
}

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
    const entry = this.#sessions.get(project, sessionId) ?? { spent: new Spent(), lastUsed: 0 };
    entry.lastUsed = this.now();
    this.#sessions.set(project, sessionId, entry);
    return new SessionAccount(entry.spent, this.keeper, name);
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
class SessionAccount {
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

/** Concurrent requests under a budget of tokens or dollars, whose usage is known only when they end. */
const maxConcurrentRequests = 4;
/** Requests that may wait for one of them to end. */
const maxWaitingRequests = 256;

/** What the user decided about a budget that is used up. `later`: the run pauses for the decision. */
type Continuation = "yes" | "no" | "later";

/** One run's budget, and what it has used of it. */
export class RunBudget {
  readonly spent = new Spent();
  readonly #settings: BudgetSettings | undefined;
  readonly #session: SessionAccount;
  #opened: Promise<void> | undefined;
  #question: Promise<Continuation> | undefined;
  readonly #slots = new FairSlots({
    atOnce: maxConcurrentRequests,
    perOwner: maxConcurrentRequests,
    waiting: maxWaitingRequests,
  });
  /** One for each open request: gives its slot back. */
  readonly #leave: (() => void)[] = [];
  /** What each open request may use at most. */
  readonly #underWayMax = new Set<ModelUsage>();
  /** Called once, when an open request has ended. */
  readonly #untilEnded: (() => void)[] = [];

  constructor(
    request: RunRequest,
    private readonly scope: OwnedScope,
    spending: SessionSpending,
    private readonly ask: Ask,
  ) {
    this.#settings = request.budget;
    this.#session = spending.of(request);
  }

  /** Called before each request is sent. An admitted request is counted immediately, and ends with `release`. */
  async admit(signal: AbortSignal, max?: ModelUsage): Promise<ModelAdmission> {
    const settings = this.#settings;
    this.#opened ??= this.#open();
    await this.#opened;
    if (settings === undefined) {
      this.#countRequest();
      return { allowed: true };
    }
    const leave = await this.#slots.acquire(this, signal);
    if (leave === undefined)
      return { allowed: false, status: 429, reason: "too many requests of the run wait for their turn" };
    this.#leave.push(leave);
    let isAdmitted = false;
    try {
      for (;;) {
        const used = this.#usedUp(settings);
        if (used === undefined && !this.#mayOverdraw(settings, max)) break;
        if (used === undefined) {
          await this.#oneEnded(signal);
          continue;
        }
        const decision =
          settings.onExceeded === "ask" ? await this.#mayContinue(settings, used, signal) : "no";
        if (decision === "yes") continue;
        if (decision === "no") this.#end(used);
        const reason = decision === "no" ? "the run's budget is used up" : "the run waits for its user";
        return { allowed: false, status: 402, reason };
      }
      this.#countRequest();
      if (max !== undefined) this.#underWayMax.add(max);
      // Counted before it is sent, so that it counts even if the runner dies meanwhile.
      if (settings.session !== undefined) await this.#exchange();
      isAdmitted = true;
      return { allowed: true };
    } finally {
      if (!isAdmitted) this.release(max);
    }
  }

  /** @param max as it was admitted. */
  release(max?: ModelUsage): void {
    if (this.#settings === undefined) return;
    if (max !== undefined) this.#underWayMax.delete(max);
    for (const resume of this.#untilEnded.splice(0)) resume();
    this.#leave.pop()?.();
  }

  used(usage: ModelUsage): void {
    this.spent.add(usage);
    this.#session.spent.add(usage);
    const settings = this.#settings;
    if (settings?.session !== undefined) this.#exchange().catch(() => undefined);
    if (settings === undefined || settings.onExceeded === "ask") return;
    const used =
      overdrawn(settings, this.spent) ??
      (settings.session && overdrawn(settings.session, this.#session.spent));
    if (used !== undefined) this.#end(used);
  }

  /**
   * Whether this request could use more than is left once the open ones have used all that they may. Alone, a request
   * is admitted as long as something is left.
   */
  #mayOverdraw(settings: BudgetSettings, max: ModelUsage | undefined): boolean {
    if (this.#underWayMax.size === 0) return false;
    const all = [...this.#underWayMax, ...(max === undefined ? [] : [max])];
    const { session } = settings;
    return (
      overdrawn(settings, this.spent.with(all)) !== undefined ||
      (session !== undefined && overdrawn(session, this.#session.spent.with(all)) !== undefined)
    );
  }

  async #oneEnded(signal: AbortSignal): Promise<void> {
    await unlessAborted(signal, () => new Promise<void>((resolve) => this.#untilEnded.push(resolve)));
  }

  #usedUp(settings: BudgetSettings): BudgetUsage | undefined {
    return (
      usedUp(settings, this.spent) ?? (settings.session && usedUp(settings.session, this.#session.spent))
    );
  }

  #countRequest(): void {
    for (const each of [this.spent, this.#session.spent]) each.requests += 1;
  }

  /**
   * The first request fetches what other runners have counted. The count is stored when the run ends, too, before another runner
   * can have the session.
   */
  async #open(): Promise<void> {
    await this.#exchange();
    this.scope.defer(() => this.#session.exchange());
  }

  /** A run whose usage can't be recorded may not use any more. */
  async #exchange(): Promise<void> {
    try {
      await this.#session.exchange();
    } catch (error) {
      this.scope.abort(toAmbitError(error));
      throw error;
    }
  }

  #end(used: BudgetUsage): void {
    this.scope.abort(new BudgetExceeded(`The run's budget is used up: ${inWords(used)}.`));
  }

  /** One question for all requests that wait for it. */
  async #mayContinue(
    settings: BudgetSettings,
    used: BudgetUsage,
    signal: AbortSignal,
  ): Promise<Continuation> {
    this.#question ??= this.#askUser(settings, used).finally(() => {
      this.#question = undefined;
    });
    const question = this.#question;
    return await unlessAborted(signal, () => question);
  }

  async #askUser(settings: BudgetSettings, used: BudgetUsage): Promise<Continuation> {
    const { onExceeded: _onExceeded, ...input } = settings;
    const isApproved = await this.ask.askOnce({
      kind: "user_approval",
      origin: "runner",
      name: "budget",
      input,
      details: { used: inWords(used) },
      read: (answer) => {
        const approved = approvalIn(answer) === true;
        return { value: approved, response: { approved } };
      },
    });
    if (isApproved === undefined) return "later";
    if (isApproved === true) this.#grantAgain(settings);
    return isApproved === true ? "yes" : "no";
  }

  /** Each amount that is used up. */
  #grantAgain(settings: BudgetSettings): void {
    if (usedUp(settings, this.spent) !== undefined) this.spent.granted += 1;
    if (settings.session !== undefined && usedUp(settings.session, this.#session.spent) !== undefined)
      this.#session.spent.granted += 1;
  }
}
