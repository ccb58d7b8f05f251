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
  /** Undefined when the agent has no model, or connects to it directly. */
  readonly gateway: PlannedGateway | undefined;
  /** Undefined when there is nothing to deliver. */
  readonly delivery: Probed<ToolDelivery> | undefined;
  readonly executors: readonly PlannedActor<ToolExecutor, ToolSpec>[];
  readonly toolSources: readonly PlannedActor<ToolSource, McpServer>[];
  /** Gaps of actors outside the sandbox that `best_effort` accepted. */
  readonly outside: readonly Gap[];
  /** Credentials that the sandbox hides, with their values: never log or return it. */
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
 * Checks that *every* actor of the run covers *every* capability that the boundary requires in the domains it touches, and
 * chooses the sandbox; or returns every gap and every issue. Pure.
 *
 * @param issues found in the request earlier; they refuse it as gaps do.
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

  const context = { boundary, required };
  const shortfalls = [
    ...(agent.issues.length > 0
      ? []
      : shortfallsOf(harness.chosen, [request], context, { further: agent.gaps })),
    ...shortfallsOf(
      gateway.chosen?.probed,
      gateway.chosen === undefined ? [] : [gateway.chosen.use],
      context,
      mediation,
    ),
    ...shortfallsOf(delivery.chosen, [undefined], context, mediation),
    ...executors.chosen.flatMap(({ probed, uses }) =>
      shortfallsOf(
        probed,
        uses.map((tool) => ({ tool, request })),
        context,
        {
          subjectOf: ({ tool }) => tool.name,
          byCaller: "outside",
        },
      ),
    ),
    ...toolSources.chosen.flatMap(({ probed, uses }) =>
      shortfallsOf(probed, uses, context, { subjectOf: ({ name }) => name }),
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
    // Not repeated where the actor states it itself; a gap that best_effort accepts hides nothing here.
    ...secretsInside(request, carriers, boundary, required).filter(
      (gap) => !refused.some((one) => isSame(one, gap)),
    ),
  ];
  const found = [
    issues,
    harness.issues,
    agent.issues,
    // Nothing more is known about an unknown harness.
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

/** Why the agent can't run this request, and what it can't cover when it connects to its model directly. */
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

/** Tool delivery and the model gateway use the run's own channel to the agent, which is no egress. */
const mediation = { mediated: ["network"] } as const;

function isSame(one: Gap, other: Gap): boolean {
  return one.actor === other.actor && one.capability === other.capability && one.subject === other.subject;
}

interface Shortfall {
  readonly gap: Gap;
  readonly site: Site;
}

function shortfallsOf<Use>(
  probed: Probed<Actor<Use>> | undefined,
  uses: readonly Use[],
  context: Pick<Question<Use>, "boundary" | "required">,
  {
    subjectOf,
    byCaller,
    ...options
  }: Pick<Question<Use>, "mediated" | "further"> & {
    readonly subjectOf?: (use: Use) => string;
    /** Only tools may act at the caller's site: in the user's own browser, listed as outside and never refused. */
    readonly byCaller?: "outside";
  } = {},
): Shortfall[] {
  if (probed === undefined) return [];
  const { site } = probed.actor;
  if (site === "caller" && byCaller === "outside") return [];
  const bound = site === "sandbox" ? "inherited" : "touched";
  return uses.flatMap((use) =>
    gapsOf({ ...context, ...options, probed, use, bound, subject: subjectOf?.(use) }).map((gap) => ({
      gap,
      site,
    })),
  );
}
