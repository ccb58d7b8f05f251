import { type BudgetAmounts, projectOf, type RunRequest, type Usage } from "@ambit/core/contract";
import type { ModelUsage, SessionUse } from "@ambit/core/plugin";
import { FairMap } from "../lifetime/memory/fair-map.js";
import type { SessionKeeper, SessionName } from "../session/session-keeper.js";

/** The usage of models by one run or one session. */
export class Spent {
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
export interface BudgetUsage {
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
export function usedUp(amounts: BudgetAmounts, spent: Spent): BudgetUsage | undefined {
  return usedOf(amounts, spent).find(({ used, limit }) => used >= limit);
}

/** The first amount that was exceeded. Pure. */
export function overdrawn(amounts: BudgetAmounts, spent: Spent): BudgetUsage | undefined {
  return usedOf(amounts, spent).find(({ used, limit }) => used > limit);
}

/** `0.52 of 0.5 usd`. Pure. */
export function inWords({ what, used, limit }: BudgetUsage): string {
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
