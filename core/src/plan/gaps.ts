import { type Capability, domainOf, type Gap } from "../contract/index.js";
import type { Actor, ActorGap } from "../plugin/index.js";

import type { Probed } from "./candidates.js";
import { callPure } from "./plugin-call.js";
import { pluginReturns } from "./plugin-returns.js";
import type { BoundedRequest, Requirement } from "./requirements.js";

/** One use of one actor, as the planner checks it. */
interface ActorUse<Use> {
  readonly probed: Probed<Actor<Use>>;
  readonly use: Use;
  /** The requirements that its own claims must cover. Gaps that it states itself count for all. */
  readonly binding: readonly Requirement[];
  /** The tool or MCP server that brings the actor in. */
  readonly subject?: string | undefined;
  /** Gaps in this run, in addition to those that `gaps` returns. */
  readonly further?: readonly ActorGap[];
}

/** The requirements that an actor's use doesn't cover: it covers `claims ∩ probed`, less what `gaps` returns. Pure. */
export function gapsOf<Use>(
  { boundary, required }: Pick<BoundedRequest, "boundary" | "required">,
  { probed, use, binding, subject, further = [] }: ActorUse<Use>,
): readonly Gap[] {
  if (required.length === 0) return [];
  const { actor } = probed;
  // A stated gap counts by its domain: an actor may state a gap of hosts where ranges are required.
  const domains = new Set(required.map(({ capability }) => domainOf(capability)));
  const gaps: Gap[] = [
    ...callPure(actor, "gaps", pluginReturns.gaps, () => actor.gaps(boundary, use)),
    ...further,
  ]
    .filter(({ capability }) => domains.has(domainOf(capability)))
    .map((gap) => withActor(actor.name, gap, subject));
  for (const { capability, because, subject: asker } of binding) {
    if (gaps.some((gap) => gap.capability === capability)) continue;
    const missing = whyUnproven(probed, capability);
    if (missing === undefined) continue;
    const reason = asker === undefined ? missing.reason : `${because}; ${missing.reason}`;
    gaps.push(withActor(actor.name, { capability, reason, fix: missing.fix }, subject ?? asker));
  }
  return gaps;
}

/** Why a capability isn't in `claims ∩ probed`; undefined when it is. @throws PluginBrokeContract for a probe without usable findings */
export function whyUnproven(
  { actor, findings, fault }: Probed<Actor<never>>,
  capability: Capability,
): Pick<Gap, "reason" | "fix"> | undefined {
  if (!actor.claims.includes(capability)) {
    const where = actor.site === "sandbox" ? "name a sandbox that does" : "remove what brings it in";
    return { reason: "it doesn't claim this", fix: `${where}, or ask for less` };
  }
  if (fault !== undefined) throw fault;
  const finding = findings.get(capability);
  if (finding === undefined) {
    return { reason: "not proven on this host", fix: "see what `ambit doctor` says of its probe" };
  }
  return finding.proven ? undefined : { reason: finding.reason, fix: finding.fix };
}

function withActor(actor: string, { capability, reason, fix }: ActorGap, subject: string | undefined): Gap {
  const gap = { actor, capability, reason, fix };
  return subject === undefined ? gap : { ...gap, subject };
}
