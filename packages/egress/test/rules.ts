import type { NetworkBoundary } from "@ambit/core/plugin";
import { parseNetworkRule } from "@ambit/core/plugin";
import { readTarget, type Target } from "../src/target.js";

/** An allowlist of entries as a person writes them. */
export function allowlist(...entries: readonly string[]): NetworkBoundary {
  const rules = entries.map((entry) => {
    const parsed = parseNetworkRule(entry);
    if (!("rule" in parsed)) throw new Error(`a rule of the test is wrong: ${entry} ${parsed.problem}`);
    return parsed.rule;
  });
  return { mode: "allowlist", rules };
}

/** A destination: a name, or an address without brackets. */
export function target(host: string, port = 443): Target {
  const reading = readTarget(host.includes(":") ? `[${host}]` : host, port);
  if (!reading.ok) throw new Error(reading.why);
  return reading.target;
}
