import {
  type Capability,
  domainOf,
  type Guarantee,
  type Receipt,
  type ReceiptActor,
} from "../contract/index.js";
import { carriedBy } from "./choose.js";
import type { Participant } from "./participants.js";
import type { AcceptedPlan } from "./plan.js";

/** What is known only after the run. */
export type RunFacts = Pick<
  Receipt,
  | "confinement"
  | "evidence"
  | "visibleCredentials"
  | "decisions"
  | "session"
  | "unaskedTools"
  | "fork"
  | "ports"
  | "outputs"
  | "sources"
  | "environment"
>;

/** The plan as it was applied, with the evidence. Pure. */
export function receiptOf(plan: AcceptedPlan, facts: RunFacts): Receipt {
  const { gateway, participants, outside } = plan;
  const modelHosts = gateway === undefined ? [] : [new URL(gateway.use.endpoint).hostname];
  return {
    sandbox: plan.sandbox.actor.name,
    enforcement: plan.boundary.enforcement,
    required: plan.required.map(({ capability }) => capability),
    guarantees: participants.flatMap((one) => guaranteesBy(one, plan)),
    actors: participants.map((one) => entry(one, plan)),
    accepted: [...outside],
    credentials: [
      ...carriedBy(gateway).map((name) => ({ name, hosts: modelHosts, by: "route" as const })),
      ...plan.hidden.map(({ name, hosts }) => ({ name, hosts: [...hosts], by: "broker" as const })),
    ],
    ...egressOf(plan),
    ...facts,
    confinement: facts.confinement === "confined" && isProven(plan.sandbox) ? "confined" : "unconfined",
  };
}

/** Whether this host lets it enforce anything: what only its author says may not be called confinement. */
function isProven({ actor, findings }: AcceptedPlan["sandbox"]): boolean {
  return actor.claims.some((claim) => findings.get(claim)?.proven === true);
}

function egressOf({ upstreamProxy }: AcceptedPlan): Pick<Receipt, "egress"> {
  if (upstreamProxy === undefined) return {};
  const proxies = upstreamProxy.routes.flatMap(({ proxy }) =>
    proxy === "direct" ? [] : [new URL(proxy.url).host],
  );
  return { egress: { proxies: [...new Set(proxies)], resolve: upstreamProxy.resolve } };
}

/** What the sandbox and each actor on the runner guarantee. Other actors have the sandbox's guarantees, or none. */
function guaranteesBy(
  { kind, probed }: Participant,
  { sandbox, required, outside }: AcceptedPlan,
): Guarantee[] {
  const { actor, findings, probedAt } = probed;
  // Another sandbox holds the boundary of what is in it, which isn't the agent's.
  if (kind === "sandbox" ? probed !== sandbox : actor.site !== "runner") return [];
  return required.flatMap(({ capability }) => {
    const finding = findings.get(capability);
    // A claim is no guarantee in a domain where the actor stated a gap for this run.
    const hasGap = outside.some(
      (gap) => gap.actor === actor.name && domainOf(gap.capability) === domainOf(capability),
    );
    if (finding?.proven !== true || !actor.claims.includes(capability) || hasGap) return [];
    const { how, warning } = finding;
    const basis = basisOf(kind, capability);
    const guarantee = { capability, by: actor.name, how, basis, provenAt: probedAt } as const;
    return [warning === undefined ? guarantee : { ...guarantee, warning }];
  });
}

/** The kit attacks the network of executors and sources of tools; what else they claim, their authors must. */
function basisOf(kind: Participant["kind"], capability: Capability): Guarantee["basis"] {
  const isToolActor = kind === "executor" || kind === "toolSource";
  return isToolActor && domainOf(capability) !== "network" ? "stated" : "attempted";
}

function entry(one: Participant, { gateway, outside }: AcceptedPlan): ReceiptActor {
  const { kind, probed, touches } = one;
  const { name, site } = probed.actor;
  const subjects =
    kind === "gateway" && gateway !== undefined ? [new URL(gateway.use.endpoint).host] : one.subjects;
  return {
    kind,
    name,
    site,
    touches: [...touches],
    assurance: assuranceOf(
      one,
      outside.some(({ actor }) => actor === name),
    ),
    ...(subjects.length === 0 ? {} : { subjects: [...subjects] }),
  };
}

function assuranceOf({ kind, probed, isMediated }: Participant, hasGap: boolean): ReceiptActor["assurance"] {
  if (kind === "sandbox") return "guaranteed";
  if (isMediated) return "mediated";
  if (probed.actor.site === "sandbox") return "inherited";
  return probed.actor.site === "caller" || hasGap ? "outside" : "guaranteed";
}
