import type { Boundary } from "../boundary/index.js";
import { type Capability, type Domain, domainOf, type Gap } from "../contract/index.js";
import type { Actor, ActorGap } from "../plugin/index.js";
import { asked } from "./asked.js";
import type { Probed } from "./candidates.js";
import type { Requirement } from "./requirements.js";

/** One actor in one use, as the planner asks about it. */
export interface Question<Use> {
  readonly probed: Probed<Actor<Use>>;
  readonly use: Use;
  readonly boundary: Boundary;
  readonly required: readonly Requirement[];
  /**
   * How the actor's claims are held against what is required. `all`: a sandbox, whatever it says it touches ·
   * `touched`: in the domains it touches · `inherited`: it acts only through the sandbox, whose guarantees are its
   * own. What it states itself counts in any case.
   */
  readonly bound: "all" | "touched" | "inherited";
  /** Domains in which its channel is the run's own, not egress: no claim is needed there. */
  readonly mediated?: readonly Domain[];
  /** The tool or MCP server that brings the actor in. */
  readonly subject?: string | undefined;
  /** What it leaves uncovered in this run beside what `gaps` names. */
  readonly further?: readonly ActorGap[];
}

/** What an actor's use leaves uncovered of the requirements: `claims ∩ probed`, less what `gaps` names. Pure. */
export function gapsOf<Use>(question: Question<Use>): readonly Gap[] {
  const { probed, use, boundary, required, subject, further = [] } = question;
  if (required.length === 0) return [];
  const { actor } = probed;
  // A stated gap counts by its domain: an actor off a list of ranges may name it as one of hosts.
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

/** The requirements that the actor must have among its own claims. */
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
