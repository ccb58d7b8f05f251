import type { Boundary } from "../boundary/index.js";
import type { Gap, Issue, McpServer, RunRequest, Site, ToolSpec } from "../contract/index.js";
import type {
  Actor,
  ActorGap,
  Harness,
  HiddenCredential,
  Rootfs,
  SandboxBackend,
  ToolDelivery,
  ToolExecutor,
  ToolSource,
} from "../plugin/index.js";
import { asked } from "./asked.js";
import type { Candidates, PlannedActor, Probed } from "./candidates.js";
import {
  chooseDelivery,
  chooseExecutors,
  chooseHarness,
  chooseSandbox,
  chooseToolSources,
} from "./choose.js";
import { budgetIssues, carriedBy, chooseGateway, type PlannedGateway } from "./choose-gateway.js";
import { credentialsHidden } from "./credentials.js";
import { gapsOf, type Question } from "./gaps.js";
import { type Requirement, requirementsOf } from "./requirements.js";
import { secretsInside } from "./secrets-inside.js";

export interface AcceptedPlan {
  readonly accepted: true;
  readonly boundary: Boundary;
  readonly required: readonly Requirement[];
  readonly sandbox: Probed<SandboxBackend>;
  readonly harness: Probed<Harness>;
  /** Undefined when the agent has no model, or goes to it by itself. */
  readonly gateway: PlannedGateway | undefined;
  /** Undefined when there is nothing to deliver. */
  readonly delivery: Probed<ToolDelivery> | undefined;
  readonly executors: readonly PlannedActor<ToolExecutor, ToolSpec>[];
  readonly toolSources: readonly PlannedActor<ToolSource, McpServer>[];
  /** Gaps of actors outside the sandbox that `best_effort` accepted. */
  readonly outside: readonly Gap[];
  /** What the sandbox is given to hide. Holds values: never logged, never answered. */
  readonly hidden: readonly HiddenCredential[];
}

export interface RefusedPlan {
  readonly accepted: false;
  /** Empty when only issues refuse the request. */
  readonly gaps: readonly Gap[];
  readonly issues: readonly Issue[];
}

export type Plan = AcceptedPlan | RefusedPlan;

/**
 * Whether *every* actor of the run covers *every* capability that the boundary requires in the domains it
 * touches, and in which sandbox; or else every gap and every issue at once. Pure: a function of its arguments.
 *
 * @param issues what was already found wrong with the request; they refuse it beside the gaps.
 */
export function planRun(
  request: RunRequest,
  boundary: Boundary,
  candidates: Candidates,
  issues: readonly Issue[] = [],
): Plan {
  const required = requirementsOf(boundary, request);
  const sandbox = chooseSandbox(request, candidates.sandboxes, boundary, required);
  const harness = chooseHarness(request, candidates.harnesses);
  const gateway = chooseGateway(request, harness.chosen?.actor, candidates.gateways);
  const agent = agentOf(request, harness.chosen, gateway.chosen !== undefined, sandbox.rootfs, boundary);
  const executors = chooseExecutors(request, candidates.executors);
  const toolSources = chooseToolSources(request, candidates.toolSources);
  const delivery = chooseDelivery(request, candidates.deliveries);

  const shortfalls = [
    ...(harness.chosen === undefined || agent.issues.length > 0
      ? []
      : shortfallsOf(harness.chosen, [request], boundary, required, { further: agent.gaps })),
    ...(gateway.chosen === undefined
      ? []
      : shortfallsOf(gateway.chosen.probed, [gateway.chosen.use], boundary, required, mediation)),
    ...(delivery.chosen === undefined
      ? []
      : shortfallsOf(delivery.chosen, [undefined], boundary, required, mediation)),
    ...executors.chosen.flatMap(({ probed, uses }) =>
      shortfallsOf(
        probed,
        uses.map((tool) => ({ tool, request })),
        boundary,
        required,
        { subjectOf: ({ tool }) => tool.name, byCaller: "outside" },
      ),
    ),
    ...toolSources.chosen.flatMap(({ probed, uses }) =>
      shortfallsOf(probed, uses, boundary, required, { subjectOf: ({ name }) => name }),
    ),
  ];
  const acceptable = (site: Site) => site === "runner" && boundary.enforcement === "best_effort";
  const carried = carriedBy(gateway.chosen);
  const hidden = credentialsHidden(request, harness.chosen?.actor, sandbox.chosen?.actor, boundary, carried);
  const carriers = {
    sandbox: sandbox.chosen,
    harness: harness.chosen,
    executors: executors.chosen,
    toolSources: toolSources.chosen,
    outside: [...carried, ...hidden.map(({ name }) => name)],
    unrouted: gateway.why,
  };
  const refused = shortfalls.filter(({ site }) => !acceptable(site)).map(({ gap }) => gap);
  const gaps = [
    ...sandbox.gaps,
    ...refused,
    // Not told twice where the actor says it itself; one that best_effort accepts hides nothing here.
    ...secretsInside(request, carriers, boundary, required).filter(
      (gap) => !refused.some((one) => isSame(one, gap)),
    ),
  ];
  const found = [
    issues,
    harness.issues,
    agent.issues,
    // Of a harness that isn't known, nothing else is.
    harness.chosen === undefined ? [] : budgetIssues(request, gateway),
    sandbox.issues,
    delivery.issues,
    executors.issues,
    toolSources.issues,
  ].flat();

  if (gaps.length > 0 || found.length > 0 || harness.chosen === undefined || sandbox.chosen === undefined) {
    return { accepted: false, gaps, issues: found };
  }
  return {
    accepted: true,
    boundary,
    required,
    sandbox: sandbox.chosen,
    harness: harness.chosen,
    gateway: gateway.chosen,
    delivery: delivery.chosen,
    executors: executors.chosen,
    toolSources: toolSources.chosen,
    outside: shortfalls.filter(({ site }) => acceptable(site)).map(({ gap }) => gap),
    hidden,
  };
}

/** What keeps the agent from this request, and what it can't cover when it goes to its model by itself. */
function agentOf(
  request: RunRequest,
  harness: Probed<Harness> | undefined,
  isRouted: boolean,
  rootfs: Rootfs,
  boundary: Boundary,
): { readonly issues: readonly Issue[]; readonly gaps: readonly ActorGap[] } {
  if (harness === undefined) return { issues: [], gaps: [] };
  const { actor } = harness;
  const issues = asked(actor, "issues", () => actor.issues(request, rootfs, isRouted));
  if (isRouted) return { issues, gaps: [] };
  const direct = () => actor.directModelGaps?.(boundary, request) ?? [];
  return { issues, gaps: asked(actor, "directModelGaps", direct) };
}

/** Tool delivery and the model's gateway reach the agent over the run's own channel: no route of its own, so no egress. */
const mediation = { mediated: ["network"] } as const;

function isSame(one: Gap, other: Gap): boolean {
  return one.actor === other.actor && one.capability === other.capability && one.subject === other.subject;
}

interface Shortfall {
  readonly gap: Gap;
  readonly site: Site;
}

function shortfallsOf<Use>(
  probed: Probed<Actor<Use>>,
  uses: readonly Use[],
  boundary: Boundary,
  required: readonly Requirement[],
  options: Pick<Question<Use>, "mediated" | "further"> & {
    readonly subjectOf?: (use: Use) => string;
    /** Tools alone may be the user's own doing: nothing else of a run takes place with the caller. */
    readonly byCaller?: "outside";
  } = {},
): Shortfall[] {
  const { site } = probed.actor;
  // The user's own browser is the conversation's other end: it is listed as outside, never refused.
  if (site === "caller" && options.byCaller === "outside") return [];
  return uses.flatMap((use) =>
    gapsOf({
      probed,
      use,
      boundary,
      required,
      bound: site === "sandbox" ? "inherited" : "touched",
      ...(options.mediated === undefined ? {} : { mediated: options.mediated }),
      ...(options.further === undefined ? {} : { further: options.further }),
      ...(options.subjectOf === undefined ? {} : { subject: options.subjectOf(use) }),
    }).map((gap) => ({ gap, site })),
  );
}
