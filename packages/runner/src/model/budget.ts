import { BudgetExceeded, toAmbitError } from "@ambit/core";
import type { Budget as BudgetSettings, RunRequest } from "@ambit/core/contract";
import { type ModelAdmission, type ModelUsage, unlessAborted } from "@ambit/core/plugin";
import type { Ask } from "../call/ask/ask.js";
import { approvalIn } from "../call/values/answer.js";
import { FairSlots } from "../lifetime/fair-slots.js";
import type { OwnedScope } from "../lifetime/scope.js";
import {
  type BudgetUsage,
  inWords,
  overdrawn,
  type SessionAccount,
  type SessionSpending,
  Spent,
  usedUp,
} from "./spending.js";

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

  /** With the first request. The count is stored when the run ends, too, before another runner can have the session. */
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
