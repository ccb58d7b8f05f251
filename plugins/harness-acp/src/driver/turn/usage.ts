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

/** ACP's `Usage`, which doesn't count cached tokens in `inputTokens`. Agents that do are recognised by the total. */
function fromUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const input = known(usage, "inputTokens");
  const output = known(usage, "outputTokens");
  const total = known(usage, "totalTokens");
  const read = numberAt(usage, "cachedReadTokens");
  const cached = (read ?? 0) + (numberAt(usage, "cachedWriteTokens") ?? 0);
  const countsCached = total !== undefined && total === (input ?? 0) + (output ?? 0);
  return summed(input === undefined || countsCached ? input : input + cached, output, total, read);
}

function fromQuota(count: unknown): Usage | undefined {
  if (!isRecord(count)) return undefined;
  return summed(known(count, "input_tokens"), known(count, "output_tokens"), undefined, undefined);
}

function known(record: JsonRecord, key: string): number | undefined {
  const value = numberAt(record, key);
  return value !== undefined && value > 0 ? value : undefined;
}

function summed(
  input: number | undefined,
  output: number | undefined,
  total: number | undefined,
  cached: number | undefined,
): Usage | undefined {
  const all = total ?? (input === undefined || output === undefined ? undefined : input + output);
  if (input === undefined && output === undefined && all === undefined) return undefined;
  return {
    ...(input === undefined ? {} : { input }),
    ...(cached === undefined || input === undefined ? {} : { cached }),
    ...(output === undefined ? {} : { output }),
    ...(all === undefined ? {} : { total: all }),
  };
}
