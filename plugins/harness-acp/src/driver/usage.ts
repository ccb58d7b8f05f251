import type { Usage } from "@ambit/core/plugin";
import { isRecord, type JsonRecord, numberAt, valueAt } from "./json-reading.js";

/**
 * Tokens of one turn, from wherever the agent puts them: `usage` of the prompt response, `_meta.quota.token_count`
 * (Gemini), or nothing. `usage_update` brings the cost; what it calls `used` is the size of the context, not of
 * this turn. Its cost is the conversation's so far, so `costBefore` is what earlier turns had reached.
 */
export function turnUsage(
  response: JsonRecord,
  cost: number | undefined,
  costBefore: number,
): Usage | undefined {
  const tokens = fromUsage(response.usage) ?? fromQuota(valueAt(response, "_meta", "quota", "token_count"));
  const usage: Usage = {
    ...(tokens ?? {}),
    ...(cost === undefined ? {} : { cost: Math.max(0, cost - costBefore) }),
  };
  return Object.keys(usage).length === 0 ? undefined : usage;
}

/** US dollars, as a `usage_update` tells them; other currencies aren't converted. */
export function costOf(update: JsonRecord): number | undefined {
  const { cost } = update;
  return isRecord(cost) && cost.currency === "USD" ? numberAt(cost, "amount") : undefined;
}

function fromUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  return summed(
    numberAt(usage, "inputTokens"),
    numberAt(usage, "outputTokens"),
    numberAt(usage, "totalTokens"),
  );
}

function fromQuota(count: unknown): Usage | undefined {
  if (!isRecord(count)) return undefined;
  return summed(numberAt(count, "input_tokens"), numberAt(count, "output_tokens"), undefined);
}

function summed(
  input: number | undefined,
  output: number | undefined,
  total: number | undefined,
): Usage | undefined {
  if (input === undefined && output === undefined && total === undefined) return undefined;
  return {
    ...(input === undefined ? {} : { input }),
    ...(output === undefined ? {} : { output }),
    total: total ?? (input ?? 0) + (output ?? 0),
  };
}
