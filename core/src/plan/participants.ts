import { type Domain, domainOf, type Gap } from "../contract/index.js";
import type { Actor, ActorGap, ActorKind, SandboxBackend } from "../plugin/index.js";
import type { Probed } from "./candidates.js";
import { gapsOf } from "./gaps.js";
import { callPure } from "./plugin-call.js";
import { pluginReturns } from "./plugin-returns.js";
import type { BoundedRequest } from "./requirements.js";

/** An actor of the run, as the plan judges it and the receipt lists it. */
export interface Participant {
  readonly kind: ActorKind;
  readonly probed: Probed<Actor<never>>;
  /** The domains that its uses act in. */
  readonly touches: readonly Domain[];
  /** The tools or MCP servers it acts for, or what further sandboxes of its are for; empty for other actors. */
  readonly subjects: readonly string[];
  /** Whether its channel is the run's own, which doesn't count as egress: tool delivery and the model gateway. */
  readonly isMediated: boolean;
  /** The run's requirements that it doesn't cover. */
  readonly gaps: readonly Gap[];
}

export interface Role<Use> {
  readonly kind: ActorKind;
  readonly probed: Probed<Actor<Use>>;
  readonly uses: readonly Use[];
  /** The name of a use's tool or MCP server. Default: it acts for none. */
  readonly subjectOf?: (use: Use) => string;
  /** Default false. */
  readonly isMediated?: boolean;
  /** Gaps in addition to those that the actor states. Default: none. */
  readonly further?: readonly ActorGap[];
}

/** The sandbox that was chosen, which has no gap. Pure. @param subjects of sandboxes of Ambit's own. Default: the agent's */
export function sandboxParticipant(
  probed: Probed<SandboxBackend>,
  subjects: readonly string[] = [],
): Participant {
  const touches = callPure(probed.actor, "touches", pluginReturns.domains, () => probed.actor.touches());
  return { kind: "sandbox", probed, touches, subjects, isMediated: false, gaps: [] };
}

/** Backends other than the run's that open sandboxes for Ambit's own programs. Pure. */
export function ownParticipants(
  run: Probed<SandboxBackend>,
  own: ReadonlyMap<string, Probed<SandboxBackend>>,
): readonly Participant[] {
  const others = new Set([...own.values()].filter((one) => one !== run));
  return [...others].map((other) => {
    const subjects = [...own].filter(([, one]) => one === other).map(([subject]) => subject);
    return sandboxParticipant(other, subjects);
  });
}

/** Any other actor. Pure. */
export function participantOf<Use>(bounded: BoundedRequest, role: Role<Use>): Participant {
  const { kind, probed, uses, subjectOf, isMediated = false, further } = role;
  const { actor } = probed;
  const touches = new Set<Domain>();
  const gaps: Gap[] = [];
  for (const use of uses) {
    const touched = callPure(actor, "touches", pluginReturns.domains, () => actor.touches(use));
    for (const domain of touched) touches.add(domain);
    // Only a tool may act at the caller's site, which is the user's browser: listed as outside, never refused.
    if (kind === "executor" && actor.site === "caller") continue;
    // An actor that acts only through the sandbox has the sandbox's guarantees.
    const own = actor.site === "sandbox" ? [] : touched;
    const bound = isMediated ? own.filter((domain) => domain !== "network") : own;
    const binding = bounded.required.filter(({ capability }) => bound.includes(domainOf(capability)));
    gaps.push(...gapsOf(bounded, { kind, probed, use, binding, subject: subjectOf?.(use), further }));
  }
  const subjects = subjectOf === undefined ? [] : uses.map(subjectOf);
  return { kind, probed, touches: [...touches], subjects, isMediated, gaps };
}
