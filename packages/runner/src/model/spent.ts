import type { BudgetAmounts, Usage } from "@ambit/core/contract";
import type { ModelUsage, SessionUse } from "@ambit/core/plugin";

/** What was used of a model, by one run or one session. */
export class Spent {
  requests = 0;
  input = 0;
  cached = 0;
  output = 0;
  /** US dollars; undefined as soon as some of it has no price. */
  cost: number | undefined = 0;
  /** How many times the user has granted the budget again. */
  granted = 0;

  add({ input, cached, output, cost }: ModelUsage): void {
    this.input += input;
    this.cached += cached;
    this.output += output;
    this.cost = this.cost === undefined || cost === undefined ? undefined : this.cost + cost;
  }

  /** What others have counted of the same, where it is more. */
  raiseTo({ requests, input, cached, output, granted, usd, isPriced }: SessionUse): void {
    this.requests = Math.max(this.requests, requests);
    this.input = Math.max(this.input, input);
    this.cached = Math.max(this.cached, cached);
    this.output = Math.max(this.output, output);
    this.granted = Math.max(this.granted, granted);
    this.cost = this.cost === undefined || !isPriced ? undefined : Math.max(this.cost, usd);
  }

  get usage(): Usage {
    const { input, cached, output, cost } = this;
    const tokens = { input, cached, output, total: input + output };
    return cost === undefined || cost === 0 ? tokens : { ...tokens, cost };
  }
}

/** One amount of a budget that is used. */
export interface Used {
  /** As on the wire: `usd`, `tokens`, `requests`. */
  readonly what: keyof BudgetAmounts;
  readonly used: number;
  readonly limit: number;
}

/** Each amount of the budget with what is used of it. A cost that isn't known counts as all of it. Pure. */
export function usedOf(amounts: BudgetAmounts, spent: Spent): readonly Used[] {
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

/** The first amount of which nothing is left for a further request. Pure. */
export function usedUp(amounts: BudgetAmounts, spent: Spent): Used | undefined {
  return usedOf(amounts, spent).find(({ used, limit }) => used >= limit);
}

/** The first amount of which more is used than there was. Pure. */
export function overdrawn(amounts: BudgetAmounts, spent: Spent): Used | undefined {
  return usedOf(amounts, spent).find(({ used, limit }) => used > limit);
}

/** `0.52 of 0.5 usd`. Pure. */
export function inWords({ what, used, limit }: Used): string {
  const figure = (value: number) => (what === "usd" ? String(Number(value.toFixed(6))) : String(value));
  return `${figure(used)} of ${figure(limit)} ${what}`;
}
