import { type NetworkBoundary, type NetworkRule, SandboxFailed } from "@ambit/core/plugin";
import { type HostRule, type Policy, parseHostRule, parseRange, type RangeRule } from "../egress/index.js";

/** The proxy's policy for a run's network boundary. Pure. @throws SandboxFailed for a rule that it can't hold. */
export function policyOf(network: NetworkBoundary): Policy {
  if (network.mode !== "allowlist") return { mode: "deny-all" };
  const hosts: HostRule[] = [];
  const ranges: RangeRule[] = [];
  for (const rule of network.rules) {
    if (rule.kind === "host") hosts.push(read(parseHostRule(textOf(rule))));
    else if (rule.port === undefined) ranges.push(read(parseRange(rule.cidr)));
    else throw new SandboxFailed(`${rule.cidr} can't be limited to a port here: list it without one`);
  }
  return { mode: "allowlist", hosts, ranges };
}

function textOf(rule: Extract<NetworkRule, { kind: "host" }>): string {
  return `${rule.subdomains ? "*." : ""}${rule.name}${rule.port === undefined ? "" : `:${rule.port}`}`;
}

type Read<Rule> = { readonly ok: true; readonly rule: Rule } | { readonly ok: false; readonly problem: { message: string } };

function read<Rule>(parsed: Read<Rule>): Rule {
  if (parsed.ok) return parsed.rule;
  throw new SandboxFailed(`An entry of the network allowlist can't be enforced: ${parsed.problem.message}`);
}
