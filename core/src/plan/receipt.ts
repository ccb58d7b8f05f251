import {
  type Capability,
  type Domain,
  domainOf,
  type Evidence,
  type Guarantee,
  type Receipt,
  type ReceiptActor,
  type RunRequest,
} from "../contract/index.js";
import type { Actor } from "../plugin/index.js";
import type { Probed } from "./candidates.js";
import { carriedBy } from "./choose-gateway.js";
import type { AcceptedPlan } from "./plan.js";

/** What is known only once the run has happened. */
export interface RunFacts {
  readonly confinement: Receipt["confinement"];
  readonly evidence: Evidence;
  readonly visibleCredentials: readonly string[];
  readonly decisions: Receipt["decisions"];
  readonly session: Receipt["session"];
}

/** The plan as it was applied, with the evidence. Pure. */
export function receiptOf(plan: AcceptedPlan, request: RunRequest, facts: RunFacts): Receipt {
  const required = plan.required.map(({ capability }) => capability);
  return {
    sandbox: plan.sandbox.actor.name,
    confinement: facts.confinement,
    enforcement: plan.boundary.enforcement,
    required,
    guarantees: guaranteesOf(plan, required),
    actors: actorsOf(plan, request),
    accepted: [...plan.outside],
    visibleCredentials: [...facts.visibleCredentials],
    credentials: [
      ...carriedBy(plan.gateway).map((name) => ({ name, hosts: gatewayHosts(plan), by: "route" as const })),
      ...plan.hidden.map(({ name, hosts }) => ({ name, hosts: [...hosts], by: "broker" as const })),
    ],
    evidence: { ...facts.evidence },
    decisions: facts.decisions,
    session: facts.session,
  };
}

function gatewayHosts({ gateway }: AcceptedPlan): string[] {
  return gateway === undefined ? [] : [new URL(gateway.use.endpoint).hostname];
}

function guaranteesOf(plan: AcceptedPlan, required: readonly Capability[]): Guarantee[] {
  const others: readonly Probed<Actor<never>>[] = [
    plan.harness,
    ...(plan.gateway === undefined ? [] : [plan.gateway.probed]),
    ...(plan.delivery === undefined ? [] : [plan.delivery]),
    ...[...plan.executors, ...plan.toolSources].map(({ probed }) => probed),
  ];
  return [plan.sandbox, ...others.filter(({ actor }) => actor.site === "runner")].flatMap(
    ({ actor, findings, probedAt }) =>
      required.flatMap((capability) => {
        const finding = findings.get(capability);
        // A claim is no guarantee in a domain where the actor stated a gap for this run.
        const accepted = plan.outside.some(
          (gap) => gap.actor === actor.name && domainOf(gap.capability) === domainOf(capability),
        );
        return finding?.proven === true && actor.claims.includes(capability) && !accepted
          ? [{ capability, by: actor.name, how: finding.how, provenAt: probedAt }]
          : [];
      }),
  );
}

function actorsOf(plan: AcceptedPlan, request: RunRequest): ReceiptActor[] {
  const { sandbox, harness, gateway, delivery } = plan;
  const outside = new Set(plan.outside.map(({ actor }) => actor));
  const assuranceOf = ({ name, site }: Actor<never>): ReceiptActor["assurance"] => {
    if (site === "sandbox") return "inherited";
    return site === "caller" || outside.has(name) ? "outside" : "guaranteed";
  };
  const actors: ReceiptActor[] = [
    entry("sandbox", sandbox.actor, "guaranteed", sandbox.actor.touches()),
    entry("harness", harness.actor, assuranceOf(harness.actor), harness.actor.touches(request)),
  ];
  if (gateway !== undefined) {
    const { probed, use } = gateway;
    const subjects = [new URL(use.endpoint).host];
    actors.push({ ...entry("gateway", probed.actor, "mediated", probed.actor.touches(use)), subjects });
  }
  if (delivery !== undefined)
    actors.push(entry("delivery", delivery.actor, "mediated", delivery.actor.touches()));
  for (const { probed, uses } of plan.executors) {
    const touched = uses.flatMap((tool) => probed.actor.touches({ tool, request }));
    const subjects = uses.map(({ name }) => name);
    actors.push({ ...entry("executor", probed.actor, assuranceOf(probed.actor), touched), subjects });
  }
  for (const { probed, uses } of plan.toolSources) {
    const touched = uses.flatMap((server) => probed.actor.touches(server));
    const subjects = uses.map(({ name }) => name);
    actors.push({ ...entry("toolSource", probed.actor, assuranceOf(probed.actor), touched), subjects });
  }
  return actors;
}

function entry(
  kind: ReceiptActor["kind"],
  { name, site }: Actor<never>,
  assurance: ReceiptActor["assurance"],
  touched: readonly Domain[],
): ReceiptActor {
  return { kind, name, site, assurance, touches: [...new Set(touched)] };
}
