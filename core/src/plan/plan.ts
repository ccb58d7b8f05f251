/** The decision on a request, and the receipt of the applied plan. */

import type { Boundary } from "../boundary.js";
import {
  type Capability,
  domainOf,
  type Gap,
  type Guarantee,
  type Issue,
  type McpServer,
  type Receipt,
  type ReceiptActor,
  type RunRequest,
  subscriptionPath,
  type ToolSpec,
} from "../contract/index.js";
import type {
  Harness,
  HiddenCredential,
  Rootfs,
  SandboxBackend,
  ToolDelivery,
  ToolExecutor,
  ToolSource,
  UpstreamProxy,
} from "../plugin/index.js";
import type { Candidates, PlannedActor, Probed } from "./candidates.js";
import {
  budgetIssues,
  carriedBy,
  chooseDelivery,
  chooseExecutors,
  chooseGateway,
  chooseHarness,
  chooseSandbox,
  chooseToolSources,
  type GatewayChoice,
  type PlannedGateway,
} from "./choose.js";
import {
  hideableCredentials,
  type OwnSandbox,
  ownParticipants,
  type Participant,
  participantOf,
  type Role,
  sandboxParticipant,
  secretsInside,
  unreadableGaps,
} from "./gaps.js";
import { callPure, pluginReturns } from "./plugin-call.js";
import type { BoundedRequest, Requirement } from "./requirements.js";

export interface AcceptedPlan {
  readonly accepted: true;
  readonly boundary: Boundary;
  readonly required: readonly Requirement[];
  readonly sandbox: Probed<SandboxBackend>;
  /** The backend of each further sandbox, by its subject. */
  readonly own: ReadonlyMap<string, Probed<SandboxBackend>>;
  readonly harness: Probed<Harness>;
  /** Undefined when the agent has no model, or connects to it directly. */
  readonly gateway: PlannedGateway | undefined;
  /** Undefined when there is nothing to deliver. */
  readonly delivery: Probed<ToolDelivery> | undefined;
  readonly executors: readonly PlannedActor<ToolExecutor, ToolSpec>[];
  readonly toolSources: readonly PlannedActor<ToolSource, McpServer>[];
  /** Every actor of the plan, in the receipt's order. */
  readonly participants: readonly Participant[];
  /** Gaps of actors outside the sandbox that `best_effort` accepted. */
  readonly outside: readonly Gap[];
  /** Credentials that the sandbox hides, with their values: never log or return it. */
  readonly hidden: readonly HiddenCredential[];
  /** The deployer's proxy, with its credentials: never log or return it. */
  readonly upstreamProxy?: UpstreamProxy | undefined;
  /** The folder of this host that is the workspace. Default: a new one. */
  readonly workspaceFolder?: string | undefined;
}

export interface RefusedPlan {
  readonly accepted: false;
  /** Empty when only issues refuse the request. */
  readonly gaps: readonly Gap[];
  readonly issues: readonly Issue[];
}

export type Plan = AcceptedPlan | RefusedPlan;

/**
 * Checks that *every* actor of the run covers *every* capability that the boundary requires in the domains it touches,
 * and chooses the sandbox; or returns every gap and every issue. Pure.
 *
 * @param issues earlier issues of the request, which refuse it as gaps do. Default: none.
 * @param ownSandboxes the further sandboxes that the run needs. Default: none.
 */
export function planRun(
  bounded: BoundedRequest,
  candidates: Candidates,
  issues: readonly Issue[] = [],
  ownSandboxes: readonly OwnSandbox[] = [],
): Plan {
  const { request, boundary, required } = bounded;
  const sandbox = chooseSandbox(bounded, candidates.sandboxes, ownSandboxes, candidates.workspaceFolder);
  const harness = chooseHarness(request, candidates.harnesses);
  const gateway = chooseGateway(request, harness.chosen?.actor, candidates.gateways);
  const agent = agentOf(bounded, harness.chosen, gateway.chosen !== undefined, sandbox.rootfs);
  const executors = chooseExecutors(request, candidates.executors);
  const toolSources = chooseToolSources(request, candidates.toolSources);
  const delivery = chooseDelivery(request, candidates.deliveries);

  const participants: Participant[] = [];
  const add = <Use>(role: Role<Use>) => participants.push(participantOf(bounded, role));
  if (sandbox.chosen !== undefined)
    participants.push(sandboxParticipant(sandbox.chosen), ...ownParticipants(sandbox.chosen, sandbox.own));
  if (agent.role !== undefined) add(agent.role);
  if (gateway.chosen !== undefined) {
    const { probed, use } = gateway.chosen;
    add({ kind: "gateway", probed, uses: [use], isMediated: true });
  }
  if (delivery.chosen !== undefined) {
    add({ kind: "delivery", probed: delivery.chosen, uses: [undefined], isMediated: true });
  }
  for (const { probed, uses: tools } of executors.chosen) {
    const uses = tools.map((tool) => ({ tool, request }));
    add({ kind: "executor", probed, uses, subjectOf: ({ tool }) => tool.name });
  }
  for (const { probed, uses } of toolSources.chosen) {
    add({ kind: "toolSource", probed, uses, subjectOf: ({ name }) => name });
  }

  const isAccepted = ({ probed }: Participant) =>
    probed.actor.site === "runner" && boundary.enforcement === "best_effort";
  const refused = participants.filter((participant) => !isAccepted(participant)).flatMap(({ gaps }) => gaps);
  const carried = carriedBy(gateway.chosen);
  const hideable = hideableCredentials(bounded, harness.chosen?.actor, sandbox.chosen?.actor, carried);
  const hidden = [
    ...request.credentials,
    ...hideable.filter(({ hiding }) => hiding === true).map(({ credential }) => credential),
  ];
  const carriers = {
    sandbox: sandbox.chosen?.actor,
    harness: harness.chosen?.actor,
    hideable,
    executors: executors.chosen,
    toolSources: toolSources.chosen,
    outside: [...carried, ...hidden.map(({ name }) => name)],
    unrouted: gateway.why,
  };
  const gaps = [
    ...sandbox.gaps,
    ...refused,
    ...unreadableGaps(bounded, harness.chosen?.actor, sandbox.chosen?.actor),
    // A gap that the actor states itself isn't repeated. A gap that best_effort accepts doesn't count here.
    ...secretsInside(bounded, carriers).filter((gap) => !refused.some((refusal) => isSame(refusal, gap))),
  ];
  const allIssues = [
    issues,
    harness.issues,
    agent.issues,
    // Nothing more is known about an unknown harness.
    harness.chosen === undefined
      ? []
      : [...budgetIssues(request, gateway), ...undeliveredIssues(request, harness.chosen.actor, gateway)],
    sandbox.issues,
    delivery.issues,
    executors.issues,
    toolSources.issues,
  ].flat();

  if (
    gaps.length > 0 ||
    allIssues.length > 0 ||
    harness.chosen === undefined ||
    sandbox.chosen === undefined
  ) {
    return { accepted: false, gaps, issues: allIssues };
  }
  return {
    accepted: true,
    boundary,
    required,
    sandbox: sandbox.chosen,
    own: sandbox.own,
    harness: harness.chosen,
    gateway: gateway.chosen,
    delivery: delivery.chosen,
    executors: executors.chosen,
    toolSources: toolSources.chosen,
    participants,
    outside: participants.filter(isAccepted).flatMap((participant) => participant.gaps),
    hidden,
    upstreamProxy: candidates.upstreamProxy,
    workspaceFolder: candidates.workspaceFolder,
  };
}

/** The issues for which the agent can't run this request, or its role, with its gaps if it connects to its model directly. */
function agentOf(
  { request, boundary }: BoundedRequest,
  harness: Probed<Harness> | undefined,
  isRouted: boolean,
  rootfs: Rootfs,
): { readonly issues: readonly Issue[]; readonly role?: Role<RunRequest> } {
  if (harness === undefined) return { issues: [] };
  const { actor } = harness;
  const issues = callPure(actor, "issues", pluginReturns.issues, () =>
    actor.issues(request, rootfs, isRouted),
  );
  if (issues.length > 0) return { issues };
  const further =
    isRouted || actor.directModelGaps === undefined
      ? []
      : callPure(actor, "directModelGaps", pluginReturns.gaps, () =>
          actor.directModelGaps?.(boundary, request),
        );
  return { issues, role: { kind: "harness", probed: harness, uses: [request], further } };
}

function isSame(first: Gap, second: Gap): boolean {
  return (
    first.actor === second.actor && first.capability === second.capability && first.subject === second.subject
  );
}

/**
 * Credentials of the request that no actor of the plan would deliver. Checked here, since an agent that silently lacks
 * one fails later, or acts as someone else. Pure.
 */
export function undeliveredIssues(
  request: RunRequest,
  harness: Harness,
  { chosen, why }: GatewayChoice,
): readonly Issue[] {
  const { gatewayCredentials, subscription } = request.modelConnection ?? {};
  const { sandboxCredentials = [] } = request;
  const issues: Issue[] = [];
  if (gatewayCredentials !== undefined && chosen?.use.headers[gatewayCredentials.header] === undefined) {
    const reason = why ?? `${harness.id}'s requests to a model go through no model gateway`;
    const message = `can't be added to the model's requests (${reason}): load @ambit/model-route and use an agent that it carries`;
    issues.push({ path: "modelConnection.gatewayCredentials", message });
  }
  if (sandboxCredentials.length === 0 && subscription === undefined) return issues;
  const delivered = new Set(
    callPure(harness, "visibleCredentials", pluginReturns.names, () => harness.visibleCredentials(request)),
  );
  if (subscription !== undefined && !delivered.has(subscriptionPath)) {
    const message = `is a login, which ${harness.id} doesn't pass on to its agent: use harness "pi", or send an API key in modelConnection.credentials`;
    issues.push({ path: subscriptionPath, message });
  }
  for (const [index, { binding }] of sandboxCredentials.entries()) {
    if (delivered.has(binding.name)) continue;
    const message = `${harness.id} doesn't pass it on to its agent: leave it out, or use another harness`;
    issues.push({ path: `sandboxCredentials[${index}]`, message });
  }
  return issues;
}

/** The parts of the receipt that are known only after the run. */
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
  | "stages"
>;

/** Makes the receipt: the applied plan with the evidence. Pure. */
export function receiptOf(plan: AcceptedPlan, facts: RunFacts): Receipt {
  const { gateway, participants, outside } = plan;
  const modelHosts = gateway === undefined ? [] : [new URL(gateway.use.endpoint).hostname];
  return {
    sandbox: plan.sandbox.actor.name,
    enforcement: plan.boundary.enforcement,
    required: plan.required.map(({ capability }) => capability),
    guarantees: participants.flatMap((participant) => guaranteesBy(participant, plan)),
    actors: participants.map((participant) => entry(participant, plan)),
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

/** Whether the sandbox provably enforces anything on this host. Its author's statement alone doesn't count as confinement. */
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

/** The kit attacks the network of executors and tool sources; their authors must attack the other claims. */
function basisOf(kind: Participant["kind"], capability: Capability): Guarantee["basis"] {
  const isToolActor = kind === "executor" || kind === "toolSource";
  return isToolActor && domainOf(capability) !== "network" ? "stated" : "attempted";
}

function entry(participant: Participant, { gateway, outside }: AcceptedPlan): ReceiptActor {
  const { kind, probed, touches } = participant;
  const { name, site } = probed.actor;
  const subjects =
    kind === "gateway" && gateway !== undefined ? [new URL(gateway.use.endpoint).host] : participant.subjects;
  return {
    kind,
    name,
    site,
    touches: [...touches],
    assurance: assuranceOf(
      participant,
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
