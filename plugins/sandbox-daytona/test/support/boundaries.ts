import { type Boundary, type NetworkRule, parseNetworkRule } from "@ambit/core/plugin";
import { configSchema, type DaytonaConfig } from "../../src/index.js";

export const unlimited: Boundary = {
  network: { mode: "on", rules: [] },
  filesystem: { mode: "on", readable: [], writable: [], denied: [] },
  resources: {},
  secrets: "visible",
  enforcement: "strict",
};

export const closed: Boundary = { ...unlimited, network: { mode: "off", rules: [] } };

/** A boundary that allows these entries, in the format of a request. */
export function listing(...entries: string[]): Boundary {
  const rules = entries.map((entry): NetworkRule => {
    const parsed = parseNetworkRule(entry);
    if ("problem" in parsed) throw new Error(`${entry}: ${parsed.problem}`);
    return parsed.rule;
  });
  return { ...unlimited, network: { mode: rules.length === 0 ? "off" : "allowlist", rules } };
}

export function configOf(overrides: object = {}): DaytonaConfig {
  return configSchema.parse({ apiKey: "key-of-the-test", ...overrides });
}
