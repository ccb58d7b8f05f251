import type { Usage } from "@ambit/core/plugin";
import { isRecord, type JsonRecord, numberAt, valueAt } from "../json-reading.js";

/**
 * Tokens from wherever the agent puts them: `usage` of the prompt response, `_meta.quota.token_count` (Gemini), or
 * nothing. A zero stands for a figure that it doesn't know: every turn that used a model has sent and got tokens.
 */
export function tokensIn(response: JsonRecord): Usage | undefined {
  return fromUsage(response.usage) ?? fromQuota(valueAt(response, "_meta", "quota", "token_count"));
}

/**
 * What one turn used. `usage_update` brings the cost; what it calls `used` is the size of the context, not of this
 * turn. Its cost is the conversation's so far, so `costBefore` is what earlier turns had reached.
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

/** US dollars, as a `usage_update` tells them; other currencies aren't converted. */
export function costOf(update: JsonRecord): number | undefined {
  const { cost } = update;
  return isRecord(cost) && cost.currency === "USD" ? numberAt(cost, "amount") : undefined;
}

/** ACP's `Usage`, which counts cached tokens beside `inputTokens`: agents that count them in it show by the total. */
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
