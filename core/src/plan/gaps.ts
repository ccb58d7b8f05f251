import type { Boundary } from "../boundary/index.js";
import { type Capability, type Domain, domainOf, type Gap } from "../contract/index.js";
import type { Actor, ActorGap } from "../plugin/index.js";
import { asked } from "./asked.js";
import type { Probed } from "./candidates.js";
import type { Requirement } from "./requirements.js";

/** One use of one actor, as the planner checks it. */
export interface Question<Use> {
  readonly probed: Probed<Actor<Use>>;
  readonly use: Use;
  readonly boundary: Boundary;
  readonly required: readonly Requirement[];
  /**
   * Which requirements the actor's claims must cover. `all`: a sandbox's, regardless of what it touches · `touched`:
   * those in the domains it touches · `inherited`: none, since it acts only through the sandbox and has its guarantees.
   * Gaps that it states itself always count.
   */
  readonly bound: "all" | "touched" | "inherited";
  /** Domains in which it uses the run's own channel, which is no egress and needs no claim. */
  readonly mediated?: readonly Domain[];
  /** The tool or MCP server that brings the actor in. */
  readonly subject?: string | undefined;
  /** Gaps in this run in addition to those that `gaps` returns. */
  readonly further?: readonly ActorGap[];
}

/** The requirements that an actor's use doesn't cover: it covers `claims ∩ probed`, less what `gaps` returns. Pure. */
export function gapsOf<Use>(question: Question<Use>): readonly Gap[] {
  const { probed, use, boundary, required, subject, further = [] } = question;
  if (required.length === 0) return [];
  const { actor } = probed;
  // A stated gap counts by its domain: an actor may state a gap of hosts where ranges are required.
  const named = [...asked(actor, "gaps", () => actor.gaps(boundary, use)), ...further];
  const stated = named.filter((gap) =>
    required.some(({ capability }) => domainOf(capability) === domainOf(gap.capability)),
  );
  const gaps: Gap[] = stated.map((gap) => withActor(actor.name, gap, subject));
  for (const { capability, because, subject: asker } of bindingOf(question)) {
    if (gaps.some((gap) => gap.capability === capability)) continue;
    const missing = whyUnproven(probed, capability);
    if (missing === undefined) continue;
    const reason = asker === undefined ? missing.reason : `${because}; ${missing.reason}`;
    gaps.push(withActor(actor.name, { capability, reason, fix: missing.fix }, subject ?? asker));
  }
  return gaps;
}

/** The requirements that the actor's own claims must cover. */
function bindingOf<Use>(question: Question<Use>): readonly Requirement[] {
  const { probed, use, required, bound, mediated = [] } = question;
  if (bound === "all") return required;
  if (bound === "inherited") return [];
  const { actor } = probed;
  const touched = asked(actor, "touches", () => actor.touches(use)).filter((one) => !mediated.includes(one));
  return required.filter(({ capability }) => touched.includes(domainOf(capability)));
}

/** Why a capability isn't in `claims ∩ probed`; undefined when it is. */
export function whyUnproven(
  { actor, findings }: Probed<Actor<never>>,
  capability: Capability,
): Pick<Gap, "reason" | "fix"> | undefined {
  if (!actor.claims.includes(capability)) {
    const where = actor.site === "sandbox" ? "name a sandbox that does" : "remove what brings it in";
    return { reason: "it doesn't claim this", fix: `${where}, or ask for less` };
  }
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
