import { type Boundary, type Candidates, normaliseBoundary, type Probed } from "@ambit/core";
import {
  type Capability,
  type Domain,
  domains,
  type Issue,
  type RunRequest,
  runRequestSchema,
  type Site,
} from "@ambit/core/contract";
import type {
  Actor,
  ActorGap,
  Finding,
  Harness,
  HiddenCredential,
  ModelGateway,
  ModelUse,
  RequiredPath,
  SandboxBackend,
  ToolDelivery,
  ToolExecutor,
  ToolSource,
  ToolUse,
} from "@ambit/core/plugin";

/** An actor as a table describes it; what is left out claims, touches and states nothing. */
export interface ActorRow {
  readonly name?: string;
  readonly site?: Site;
  readonly claims?: readonly Capability[];
  /** Default: every claim. */
  readonly proven?: readonly Capability[];
  readonly touches?: readonly Domain[];
  readonly states?: readonly ActorGap[];
}

/** Whatever acts: a plan that calls it isn't pure. */
const acts = (): never => {
  throw new Error("a plan starts nothing");
};

function actorOf<Use>(row: ActorRow, name: string, site: Site): Actor<Use> {
  return {
    name: row.name ?? name,
    site: row.site ?? site,
    claims: row.claims ?? [],
    touches: () => row.touches ?? [],
    gaps: () => row.states ?? [],
    probe: acts,
  };
}

function probed<A extends { readonly claims: readonly Capability[] }>(actor: A, row: ActorRow): Probed<A> {
  const findings = actor.claims.map((capability): [Capability, Finding] => [
    capability,
    (row.proven ?? actor.claims).includes(capability)
      ? { capability, proven: true, how: `seen: ${capability}` }
      : { capability, proven: false, reason: "EPERM", fix: "allow it" },
  ]);
  return { actor, findings: new Map(findings), probedAt: "2026-01-01T00:00:00.000Z" };
}

export function sandbox(
  row: ActorRow & Pick<SandboxBackend, "rootfs" | "image" | "opensFolders" | "hides" | "reads"> = {},
): Probed<SandboxBackend> {
  const { rootfs, image, opensFolders, hides, reads } = row;
  const own = {
    ...(rootfs === undefined ? {} : { rootfs }),
    ...(image === undefined ? {} : { image }),
    ...(opensFolders === undefined ? {} : { opensFolders }),
    ...(hides === undefined ? {} : { hides }),
    ...(reads === undefined ? {} : { reads }),
  };
  return probed({ ...actorOf<void>(row, "local", "sandbox"), ...own, open: acts }, row);
}

export function delivery(row: ActorRow = {}): Probed<ToolDelivery> {
  return probed(
    { ...actorOf<void>({ touches: ["network"], ...row }, "mcp-http", "runner"), publish: acts },
    row,
  );
}

export function executor(
  row: ActorRow & { readonly kind?: string; readonly issues?: readonly Issue[] } = {},
): Probed<ToolExecutor> {
  const kind = row.kind ?? "callback";
  const base = actorOf<ToolUse>(row, kind, "runner");
  return probed({ ...base, kind, issues: () => row.issues ?? [], execute: acts }, row);
}

export function harness(
  row: ActorRow & {
    readonly id?: string;
    readonly aliases?: readonly string[];
    readonly issues?: readonly Issue[];
    /** What is wrong only where the runner's own programs are used. */
    readonly issuesOnRunner?: readonly Issue[];
    readonly visible?: readonly string[];
    readonly hideable?: readonly HiddenCredential[];
    readonly model?: ModelUse;
    /** What it states only where no gateway carries its model. */
    readonly direct?: readonly ActorGap[];
    readonly requiredPaths?: readonly RequiredPath[];
  } = {},
): Probed<Harness> {
  const id = row.id ?? "demo";
  const base = actorOf<RunRequest>({ touches: domains, ...row }, id, "sandbox");
  const { aliases = [], issues = [], issuesOnRunner = [], visible = [], hideable = [] } = row;
  const actor: Harness = {
    ...base,
    id,
    aliases,
    issues: (_request, rootfs) => (rootfs === "host" ? [...issues, ...issuesOnRunner] : issues),
    visibleCredentials: () => visible,
    hideableCredentials: () => hideable,
    model: () => row.model,
    directModelGaps: () => row.direct ?? [],
    supportsPermissionRequests: true,
    maxToolCallMs: 60_000,
    requiredPaths: () => row.requiredPaths ?? [],
    start: acts,
  };
  return probed(actor, row);
}

export function gateway(row: ActorRow & { readonly issues?: readonly Issue[] } = {}): Probed<ModelGateway> {
  const base = actorOf<ModelUse>({ touches: ["network", "secrets"], ...row }, "model-route", "runner");
  return probed({ ...base, issues: () => row.issues ?? [], unpriced: () => [], open: acts }, row);
}

export function toolSource(
  row: ActorRow & { readonly connection?: "http" | "stdio"; readonly issues?: readonly Issue[] } = {},
): Probed<ToolSource> {
  const connection = row.connection ?? "http";
  const site = connection === "http" ? "runner" : "sandbox";
  const base = actorOf<RunRequest["mcpServers"][number]>(row, `mcp-${connection}-client`, site);
  return probed({ ...base, connection, issues: () => row.issues ?? [], connect: acts }, row);
}

export function candidates(rows: Partial<Candidates> = {}): Candidates {
  return {
    sandboxes: [sandbox()],
    executors: [],
    deliveries: [delivery()],
    harnesses: [harness()],
    toolSources: [],
    gateways: [],
    ...rows,
  };
}

export function request(body: object = {}): RunRequest {
  return runRequestSchema.parse({ messages: [{ role: "user", content: "go" }], ...body });
}

export function boundaryOf(asked: RunRequest): Boundary {
  const { boundary, issues } = normaliseBoundary(asked.sandboxPermission, asked.ports);
  if (issues.length > 0) throw new Error(JSON.stringify(issues));
  return boundary;
}
