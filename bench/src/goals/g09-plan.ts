import {
  type ActorGap,
  type Boundary,
  boundedRequest,
  type Candidates,
  type Capability,
  capabilities,
  domains,
  type Finding,
  normaliseBoundary,
  type Probed,
  planRun,
  runRequestSchema,
} from "@ambit/core";
import type { Harness, SandboxBackend, ToolDelivery, ToolExecutor, ToolSource } from "@ambit/core/plugin";
import { CallbackExecutor, configSchema } from "@ambit/executor-callback";
import type { Goal } from "../goal.js";
import { interleaved, mediansOf, timedEach } from "../measure.js";
import { demoRequest, toolCallback, usualTool } from "../subjects/server/requests.js";

const kinds = 40;

/** The plan checks every tool, and costs less than parsing them. */
export const plan: Goal = {
  id: "G9",
  title: "full per-tool plan, 1,000 tools × 100 actors ÷ JSON.parse of the body",
  goal: "≤ 0.5",
  needs: [],
  async run({ pairs }) {
    const body = demoRequest("say hello", {
      toolCallback: toolCallback("https://tools.example.com/call"),
      customTools: Array.from({ length: 1_000 }, (_, index) => usualTool(index, `kind-${index % kinds}`)),
      sandboxPermission: {
        network: { mode: "allowlist", allowlist: ["tools.example.com", "*.example.org", "10.0.0.0/8"] },
        filesystem: "workspace",
        resources: { memoryMb: 1_024, processes: 100 },
      },
    });
    const request = runRequestSchema.parse(JSON.parse(body));
    const candidates = hundredActors();
    const planOnce = () =>
      planRun(boundedRequest(request, normaliseBoundary(request.sandboxPermission).boundary), candidates);
    const planned = planOnce();
    if (!planned.accepted) throw new Error(`the plan is refused: ${JSON.stringify(planned).slice(0, 500)}`);
    const measured = await interleaved(
      () => timedEach(10, planOnce),
      () => timedEach(10, () => JSON.parse(body)),
      { pairs: pairs(60), warmUp: 20 },
    );
    return [
      {
        what: "1,000 tools on 100 actors, planned ÷ JSON.parse of the body",
        unit: "×",
        values: measured.ratios,
        limit: { atMost: 0.5 },
        note: mediansOf(measured, "ms"),
      },
    ];
  },
};

const proven: ReadonlyMap<Capability, Finding> = new Map(
  capabilities.map((capability) => [capability, { capability, proven: true, how: "for the bench" }]),
);

function probed<Actor>(actor: Actor): Probed<Actor> {
  return { actor, findings: proven, probedAt: new Date(0).toISOString() };
}

const starts = () => Promise.reject(new Error("a plan starts nothing"));

const noGaps = (): readonly ActorGap[] => [];

/** Forty real callback executors and sixty other actors; the last sandbox is the one that is chosen. */
function hundredActors(): Candidates {
  const inSandbox = {
    site: "sandbox",
    claims: capabilities,
    touches: () => domains,
    gaps: noGaps,
    probe: starts,
  } as const;
  const agents = {
    aliases: [],
    issues: () => [],
    visibleCredentials: () => [],
    supportsPermissionRequests: true,
    maxToolCallMs: 60_000,
    requiredPaths: () => [],
    start: starts,
  };
  return {
    sandboxes: named("sandbox", 20).map((name, index) =>
      probed<SandboxBackend>({
        ...inSandbox,
        name,
        open: starts,
        ...(index < 19 ? { gaps: withoutMemory } : {}),
      }),
    ),
    executors: named("kind", kinds).map((kind) => probed(callbackOfKind(kind))),
    deliveries: named("delivery", 10).map((name) =>
      probed<ToolDelivery>({ ...inSandbox, name, publish: starts }),
    ),
    harnesses: ["demo", ...named("agent", 19)].map((name) =>
      probed<Harness>({ ...inSandbox, ...agents, name, id: name }),
    ),
    gateways: [],
    toolSources: named("source", 10).map((name) =>
      probed<ToolSource>({ ...inSandbox, name, connection: "http", issues: () => [], connect: starts }),
    ),
  };
}

function callbackOfKind(kind: string): ToolExecutor {
  const real = new CallbackExecutor(configSchema.parse({}));
  return {
    kind,
    name: kind,
    site: real.site,
    claims: real.claims,
    touches: () => real.touches(),
    gaps: (boundary, use) => real.gaps(boundary, use),
    issues: (use) => real.issues(use),
    probe: starts,
    execute: starts,
  };
}

function withoutMemory({ resources }: Boundary): readonly ActorGap[] {
  if (resources.memoryMb === undefined) return [];
  return [{ capability: "resources.memory", reason: "this one has no limit of memory", fix: "name another" }];
}

function named(what: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${what}-${index}`);
}
