import type { ModelUse } from "@ambit/core/plugin";
import type { Price } from "./config.js";
import type { Counted } from "./protocols/protocol.js";

/** Whether a name matches a pattern in which `*` matches any text. Linear in both. Pure. */
export function matchesPattern(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return name === pattern;
  if (!name.startsWith(first)) return false;
  const last = rest.pop() ?? "";
  let from = first.length;
  for (const part of rest) {
    const at = name.indexOf(part, from);
    if (at === -1) return false;
    from = at + part.length;
  }
  return name.length - last.length >= from && name.endsWith(last);
}

/** The models that a run may use: its own, those that its agent uses by itself, and the operator's. Pure. */
export function allowedModels(use: ModelUse, operators: readonly string[]): readonly string[] {
  return [use.model, ...use.auxiliaryModels, ...operators].filter((pattern) => pattern !== "");
}

export function isAllowed(model: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => matchesPattern(pattern, model));
}

/** The price of the longest pattern that matches the model, or that is the same pattern. Pure. */
export function priceOf(model: string, prices: Readonly<Record<string, Price>>): Price | undefined {
  const longest = Object.keys(prices)
    .filter((pattern) => pattern === model || matchesPattern(pattern, model))
    .sort((one, other) => other.length - one.length)[0];
  return longest === undefined ? undefined : prices[longest];
}

const million = 1_000_000;

/** Bytes per token for an estimate, where the provider hasn't counted yet, or never does. */
export const bytesPerToken = 4;

/** US dollars. Pure. */
export function costOf({ input, cached, cacheWritten, output }: Counted, price: Price): number {
  const plain = Math.max(0, input - cached - cacheWritten);
  const read = cached * (price.cached ?? price.input);
  const written = cacheWritten * (price.cacheWrite ?? price.input);
  return (plain * price.input + read + written + output * price.output) / million;
}
