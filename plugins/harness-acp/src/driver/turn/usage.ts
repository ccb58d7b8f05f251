import type { Usage } from "@ambit/core/plugin";
import { isRecord, type JsonRecord, numberAt, valueAt } from "../json-reading.js";

/**
 * Tokens from any place where agents report them: `usage` of the prompt response, `_meta.quota.token_count` (Gemini),
 * or nowhere. A zero means an unknown figure, since every turn that used a model sent and received tokens.
 */
export function tokensIn(response: JsonRecord): Usage | undefined {
  return fromUsage(response.usage) ?? fromQuota(valueAt(response, "_meta", "quota", "token_count"));
}

/**
 * The usage of one turn. `usage_update` contains the cost; its `used` is the size of the context, not of this turn. Its
 * cost is the conversation's total, so `costBefore` is the total of earlier turns.
 */
export function turnUsage(
  tokens: Usage | undefined,
  cost: number | undefined,
  costBefore: number,
): Usage | undefined {
  const spent = cost === undefined ? 0 : cost - costBefore;
  const usage: Usage = { ...tokens, ...(spent > 0 ? { cost: spent } : {}) };
  return Object.keys(usage).length === 0 ? undefined : usage;
}

/** US dollars, from a `usage_update`; other currencies aren't converted. */
export function costOf(update: JsonRecord): number | undefined {
  const { cost } = update;
  return isRecord(cost) && cost.currency === "USD" ? numberAt(cost, "amount") : undefined;
}

/**
 * ACP's `Usage`, which counts cached tokens and thoughts beside `inputTokens` and `outputTokens`. Agents that include them
 * are recognised by the total.
 */
function fromUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const [input, output, total, reasoning, written] = [
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "thoughtTokens",
    "cachedWriteTokens",
  ].map((key) => positiveAt(usage, key));
  const read = numberAt(usage, "cachedReadTokens");
  const beside = { cached: (read ?? 0) + (written ?? 0), thoughts: reasoning ?? 0 };
  const plain = (input ?? 0) + (output ?? 0);
  const isTotal = (...parts: readonly number[]) => total === parts.reduce((sum, part) => sum + part, plain);
  const countsCached = isTotal() || isTotal(beside.thoughts);
  const countsThoughts = !isTotal(beside.thoughts) && !isTotal(beside.cached, beside.thoughts);
  const sum = summed(
    input === undefined || countsCached ? input : input + beside.cached,
    output === undefined || countsThoughts ? output : output + beside.thoughts,
    total,
  );
  if (sum === undefined) return undefined;
  return {
    ...sum,
    ...(sum.input === undefined || read === undefined ? {} : { cached: read }),
    ...(sum.input === undefined || written === undefined ? {} : { cacheWritten: written }),
    ...(sum.output === undefined || reasoning === undefined ? {} : { reasoning }),
  };
}

function fromQuota(count: unknown): Usage | undefined {
  if (!isRecord(count)) return undefined;
  return summed(positiveAt(count, "input_tokens"), positiveAt(count, "output_tokens"), undefined);
}

function positiveAt(record: JsonRecord, key: string): number | undefined {
  const value = numberAt(record, key);
  return value !== undefined && value > 0 ? value : undefined;
}

function summed(
  input: number | undefined,
  output: number | undefined,
  total: number | undefined,
): Usage | undefined {
  const all = total ?? (input === undefined || output === undefined ? undefined : input + output);
  if (input === undefined && output === undefined && all === undefined) return undefined;
  return {
    ...(input === undefined ? {} : { input }),
    ...(output === undefined ? {} : { output }),
    ...(all === undefined ? {} : { total: all }),
  };
}
