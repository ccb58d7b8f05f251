import {
  type AcceptedPlan,
  BoundaryRefused,
  type BoundedRequest,
  boundedRequest,
  type Candidates,
  callPure,
  lacksBackend,
  normaliseBoundary,
  type OwnSandbox,
  type Plan,
  planRun,
  pluginReturns,
  type Registry,
  RequestInvalid,
} from "@ambit/core";
import { type Issue, projectOf, type RunRequest, type Warning, type Webhook } from "@ambit/core/contract";
import type { Dialect, Harness, Prewarm, RequestedCommand, ToolPolicy } from "@ambit/core/plugin";
import { isPattern } from "../call/pattern.js";
import {
  classesNotAllowed,
  hasUnnamedTools,
  mayMatchAgentTool,
  toolsNamed,
  unaskedClasses,
  unusedRules,
} from "../call/permissions.js";
import { secretsOf, tooManySecrets } from "../events/redaction.js";
import {
  type CredentialRefreshService,
  noCredentialRefresh,
  noPreviews,
  noWorkspaces,
  type PermissionCeiling,
  type PreviewService,
  type WorkspaceService,
} from "../operator.js";
import { inCallersTrace } from "../parse/callers-trace.js";
import { promptOf } from "../parse/messages.js";
import { type ContractSettings, parseRunRequest } from "../parse/parse.js";
import type { AskedStart } from "../session/agent-pool.js";
import { ownPublication } from "../session/publish.js";
import type { PlannedToolPolicy } from "../tokens.js";
import {
  belowMinimum,
  type CallerRules,
  candidatesFor,
  inCallersProject,
  type MinimumBoundary,
  type RunOptions,
  strictestCeiling,
  withoutSharedSession,
} from "./caller-rules.js";
import { commandIn } from "./commands.js";

/** A request that may start: every actor in it covers what the boundary requires. */
export interface AdmittedRun {
  readonly request: RunRequest;
  /** What the request carries out at most once. Absent: a run of its own. */
  readonly command?: RequestedCommand | undefined;
  readonly plan: AcceptedPlan;
  /** What decides on calls of the request's own tools, besides their permissions. */
  readonly toolPolicies: readonly PlannedToolPolicy[];
  /** Every credential of the request: never log or return it. */
  readonly secrets: readonly string[];
  /** Parts of the request that have no effect, or another one than it seems. */
  readonly warnings: readonly Warning[];
}

/** The operator's settings for every request. */
export interface AdmissionRules {
  readonly permissionCeiling: PermissionCeiling;
  /**
   * What becomes of a request whose default asks, for an agent that doesn't ask before it uses its own tools. Default:
   * `refuse`.
   */
  readonly unaskedTools?: UnaskedTools;
  /** What the boundary of every request restricts at least. Default: nothing. */
  readonly minimum?: MinimumBoundary;
  /** Whether several tenants share this runner: then no session without a project is kept. Default false. */
  readonly hasTenants?: boolean;
  /** Default: no unknown key is ignored. */
  readonly contract?: ContractSettings;
  /**
   * Why runs of this project can't have this webhook, by path within it; empty when they can. Default: nothing here sends
   * webhooks.
   */
  readonly webhookIssues?: (webhook: Webhook, project: string | undefined) => readonly Issue[];
  /** What takes files out of workspaces. Default: nothing does. */
  readonly workspaces?: WorkspaceService;
  /** The folder of this host that is the workspace of a run. Undefined, and the default: the run has a new one. */
  readonly workspaceFolderOf?: ((request: RunRequest) => string | undefined) | undefined;
  /** What makes URLs of ports inside. Default: nothing does, and such a request is refused. */
  readonly previews?: PreviewService;
  /** What asks platforms for new values of credentials. Default: nothing does, and such a request is refused. */
  readonly credentialRefresh?: CredentialRefreshService;
  /** Whether the session's next turn has a stored answer to use: then it needs no message. Default: it has none. */
  readonly hasStoredAnswer?: (request: RunRequest) => Promise<boolean>;
}

/** `boundary`: the boundary stands for the agent's own tools, with a warning. A rule or a default that denies refuses. */
type UnaskedTools = "refuse" | "boundary";

/** A request body, as it was read. */
type Read = Pick<AdmittedRun, "request" | "warnings">;

/**
 * Step 1: the body as a request.
 * @throws RequestInvalid, PluginBrokeContract
 */
function parse(body: unknown, dialects: readonly Dialect[], contract?: ContractSettings): Read {
  const parsed = parseRunRequest(body, contract, dialects);
  if (!parsed.ok) throw new RequestInvalid(parsed.issues);
  return { request: parsed.request, warnings: parsed.warnings ?? [] };
}

/** @throws RequestInvalid for a boundary that can't be read: refusing it by gaps would guess what it meant. */
function bounded(request: RunRequest): BoundedRequest {
  const { boundary, issues } = normaliseBoundary(request.sandboxPermission, request.ports);
  if (issues.length > 0) throw new RequestInvalid(issues);
  return boundedRequest(request, boundary);
}

/** Step 2: the plan, accepted or refused, as pure as `planRun`. */
function plan(
  bounded: BoundedRequest,
  secrets: readonly string[],
  candidates: Candidates,
  ceiling: PermissionCeiling,
  { webhookIssues, unaskedTools }: Pick<AdmissionRules, "webhookIssues" | "unaskedTools">,
  otherIssues: readonly Issue[],
  own: readonly OwnSandbox[],
): Plan {
  const { request } = bounded;
  const issues = [
    ...ruleIssues(request),
    ...(tooManySecrets(secrets) ?? []),
    ...issuesOfWebhook(request, webhookIssues),
    ...otherIssues,
  ];
  const decided = planRun(bounded, candidates, issues, own);
  if (!decided.accepted) return decided;
  const unheld = unheldIssues(request, ceiling, decided.harness.actor, unaskedTools);
  return unheld.length === 0 ? decided : { accepted: false, gaps: [], issues: unheld };
}

/**
 * Steps 1 and 2 of a run.
 * @throws RequestInvalid, BoundaryRefused; StoreFailed if stored answers can't be read
 */
export async function admit(
  body: unknown,
  registry: Registry,
  rules: AdmissionRules,
  asker: Pick<RunOptions, "caller" | "trace"> = {},
): Promise<AdmittedRun> {
  const { caller, trace } = asker;
  const parsed = inCallersTrace(parse(body, registry.dialects, rules.contract), trace);
  const { request, warnings } = inProject(parsed, rules, caller);
  const restricted = bounded(request);
  const secrets = secretsOf(request);
  const own = [...(rules.workspaces ?? noWorkspaces).ownSandboxes(request).values()];
  // A boundary without requirements needs no proof, so the run doesn't wait for probes.
  const isProofNeeded = restricted.required.length > 0 || own.length > 0;
  // Read before waiting: meanwhile another request may have started the new probe.
  const { isRestoredInPart } = registry;
  const ceiling =
    caller === undefined
      ? rules.permissionCeiling
      : strictestCeiling(rules.permissionCeiling, caller.permissionCeiling);
  const others = [
    ...toolPolicyIssues(request, registry.toolPolicies),
    ...(await promptIssues(request, rules)),
    ...workspaceIssues(restricted, rules.workspaces),
    ...(rules.previews ?? noPreviews).issues(request),
    ...refreshIssues(request, rules.credentialRefresh),
    ...belowMinimum(restricted.boundary, rules.minimum ?? {}, "this server"),
    ...belowMinimum(restricted.boundary, caller?.minimum ?? {}, "this token"),
    ...setupIssues(own, rules.minimum ?? {}, "this server"),
    ...setupIssues(own, caller?.minimum ?? {}, "this token"),
  ];
  const planWith = async (sandbox?: string) => {
    const actors = isProofNeeded ? await registry.candidates(sandbox) : registry.knownCandidates();
    const all = { ...actors, workspaceFolder: rules.workspaceFolderOf?.(request) };
    const candidates = caller === undefined ? all : candidatesFor(all, caller);
    return plan(restricted, secrets, candidates, ceiling, rules, others, own);
  };
  let decided = await planWith(request.sandbox);
  // What the named backend can't open for a program of Ambit's own, another may: only then is its proof waited for.
  if (request.sandbox !== undefined && !decided.accepted && lacksBackend(decided, own))
    decided = await planWith();
  if (decided.accepted)
    return {
      request,
      command: commandIn(registry.dialects, request),
      plan: decided,
      toolPolicies: toolPoliciesFor(request, registry.toolPolicies),
      secrets,
      warnings: [...warnings, ...warningsOf(request, decided)],
    };
  if (decided.gaps.length === 0) throw new RequestInvalid(decided.issues);
  // What was missing may have been installed since an earlier process probed.
  if (isRestoredInPart) {
    registry.invalidateRestored();
    return admit(body, registry, rules, asker);
  }
  throw new BoundaryRefused(decided.gaps, decided.issues);
}

function inProject(
  { request, warnings }: Read,
  { hasTenants = false }: AdmissionRules,
  caller: CallerRules | undefined,
): Read {
  if (caller !== undefined) return { request: inCallersProject(request, caller), warnings };
  if (!hasTenants) return { request, warnings };
  const alone = withoutSharedSession(request);
  return { request: alone.request, warnings: [...warnings, ...alone.warnings] };
}

/** Rules that have no effect, as far as that is known before the MCP servers list their tools; tools that run unasked. */
function warningsOf(request: RunRequest, { harness: { actor } }: AcceptedPlan): readonly Warning[] {
  const unasked = unaskedWarnings(request, actor);
  if (hasUnnamedTools(request)) return unasked;
  return [...unasked, ...unusedRules(request, actor.id, toolsNamed(request, actor))];
}

/** Only for a plan that was accepted: the operator lets the boundary stand for the agent's own tools. */
function unaskedWarnings(request: RunRequest, harness: Harness): readonly Warning[] {
  const unasked = unaskedClasses(request, harness);
  if (unasked.length === 0) return [];
  const { default: mode } = request.permissions;
  const message = `'${mode}' doesn't apply to ${harness.id}'s own tools (${unasked.join(", ")}), which it uses without asking: only the boundary confines them`;
  return [{ path: "permissions.default", message }];
}

/** A rule that could never match would look like protection. */
function ruleIssues({ permissions }: RunRequest): Issue[] {
  return (permissions.rules ?? []).flatMap(({ pattern }, index) =>
    isPattern(pattern)
      ? []
      : [
          {
            path: `permissions.rules[${index}].pattern`,
            message: "must be a tool's Name, or Name(prefix:*) with at most 256 characters of prefix",
          },
        ],
  );
}

function toolPolicyIssues(request: RunRequest, policies: readonly ToolPolicy[]): Issue[] {
  return policies.flatMap((policy) =>
    callPure(policy, "issues", pluginReturns.issues, () => policy.issues(request)),
  );
}

/** Those that decide on calls of this request's tools. @throws PluginBrokeContract */
function toolPoliciesFor(request: RunRequest, policies: readonly ToolPolicy[]): PlannedToolPolicy[] {
  return policies.flatMap((offer) => {
    const policy = callPure(offer, "forRun", pluginReturns.toolPolicy, () => offer.forRun(request));
    return policy === undefined ? [] : [{ offer, policy }];
  });
}

/** Permissions that can't be enforced on an agent that doesn't ask before it uses its own tools: refused, not ignored. */
function unheldIssues(
  request: RunRequest,
  ceiling: PermissionCeiling,
  harness: Harness,
  unaskedTools: UnaskedTools = "refuse",
): Issue[] {
  if (harness.supportsPermissionRequests) return [];
  const message = (what: string, instead: string) =>
    `${harness.id} doesn't ask before it uses its own tools, so ${what} can't be enforced: ${instead}, or use a harness that asks`;
  // A name that isn't published may be one of the agent's own; of MCP servers only the included tools are known yet.
  const toolNames = toolsNamed(request, harness);
  const { default: mode, rules = [] } = request.permissions;
  const issues: Issue[] = [];
  const unallowed = classesNotAllowed(request, toolNames);
  if (unallowed.length > 0 && (unaskedTools === "refuse" || mode === "deny")) {
    const instead = `allow them by rules for ${unallowed.join(", ")} (the boundary confines what they do), or set permissions.default to "allow"`;
    issues.push({ path: "permissions.default", message: message(`the default '${mode}'`, instead) });
  }
  for (const [index, { pattern, permission }] of rules.entries()) {
    if (permission === "allow" || !mayMatchAgentTool(pattern, toolNames)) continue;
    const instead = "remove it (a tool of an MCP server is known by mcpServers[].policy.tools.names)";
    const path = `permissions.rules[${index}].pattern`;
    issues.push({ path, message: message(`a rule for '${pattern}'`, instead) });
  }
  const denials =
    ceiling === true ? ["every tool"] : ceiling.filter((pattern) => mayMatchAgentTool(pattern, toolNames));
  if (denials.length > 0) {
    const instead = "its operator may leave it out of permissions.deny";
    const what = `this runner's denial of ${denials.join(", ")}`;
    issues.push({ path: "harness", message: message(what, instead) });
  }
  return issues;
}

function workspaceIssues(
  { request, boundary }: BoundedRequest,
  workspaces: WorkspaceService = noWorkspaces,
): readonly Issue[] {
  const issues = [...workspaces.issues(request)];
  if (request.fork !== undefined && boundary.filesystem.mode === "readonly") {
    const message = 'needs a workspace that can be written: set sandboxPermission.filesystem to "workspace"';
    issues.push({ path: "fork", message });
  }
  if (boundary.filesystem.mode !== "off") return issues;
  const message =
    'needs a workspace, and sandboxPermission.filesystem is "off": allow "workspace" or "readonly"';
  const wanted = (["outputs", "workspace", "environment", "fork"] as const).filter(
    (path) => request[path] !== undefined,
  );
  return [...issues, ...wanted.map((path) => ({ path, message }))];
}

/** Setup commands are the caller's: they may do no more than its agent. */
function setupIssues(own: readonly OwnSandbox[], minimum: MinimumBoundary, whose: string): readonly Issue[] {
  return own
    .filter(({ subject }) => subject === "environment")
    .flatMap(({ boundary }) => belowMinimum(boundary, minimum, whose))
    .map(({ path, message }) => ({
      path: path.replace(/^sandboxPermission/, "environment.boundary"),
      message,
    }));
}

async function promptIssues(
  request: RunRequest,
  { hasStoredAnswer }: Pick<AdmissionRules, "hasStoredAnswer">,
): Promise<Issue[]> {
  if (promptOf(request.messages).kind !== "none" || request.environment?.prepareOnly === true) return [];
  if ((await hasStoredAnswer?.(request)) === true) return [];
  return [{ path: "messages", message: "No user message to send (prompt/messages empty)." }];
}

/** The callbacks for new values of credentials that can't be made from here. */
function refreshIssues(
  { credentials }: RunRequest,
  service: CredentialRefreshService = noCredentialRefresh,
): readonly Issue[] {
  return credentials.flatMap(({ refresh }, index) => {
    const reason = refresh === undefined ? undefined : service.whyRefused(new URL(refresh.url));
    const path = `credentials[${index}].refresh.url`;
    return reason === undefined ? [] : [{ path, message: `is refused: ${reason}` }];
  });
}

/** The webhook that can't be sent from here. */
function issuesOfWebhook(
  request: RunRequest,
  issuesOf: (webhook: Webhook, project: string | undefined) => readonly Issue[] = sendsNone,
): Issue[] {
  const { webhook } = request;
  if (webhook === undefined) return [];
  return issuesOf(webhook, projectOf(request)).map(({ path, message }) => ({
    path: path === "" ? "webhook" : `webhook.${path}`,
    message,
  }));
}

const sendsNone = (): readonly Issue[] => [
  {
    path: "",
    message: "can't be sent from here: send the request to a server (`ambit serve`) that has a store",
  },
];

export function harnessesOf(registry: Registry): readonly Harness[] {
  return registry.knownCandidates().harnesses.map(({ actor }) => actor);
}

/** The deployer's part of a request as a whole request that belongs to no caller. Pure. */
export function prewarmBody({ id }: Pick<Harness, "id">, { request }: Pick<Prewarm, "request">): object {
  return { ...request, harness: id, messages: [{ role: "user", content: "none yet" }] };
}

/** The start of an agent that no run has asked for yet. Pure. */
export function prewarmedStart(
  { request, plan }: Pick<AdmittedRun, "request" | "plan">,
  { tools }: Pick<Prewarm, "tools">,
  ceiling: PermissionCeiling,
): AskedStart {
  const deniesTools = ceiling === true || ceiling.length > 0;
  return { request, plan, deniesTools, serverNames: tools ? [ownPublication] : [] };
}

/** What is wrong with the requests that a deployer wants agents started ahead for; empty if nothing is. */
export function prewarmIssues(registry: Registry, contract?: ContractSettings): readonly Issue[] {
  const { dialects } = registry;
  return harnessesOf(registry).flatMap((harness) =>
    (harness.prewarm ?? []).flatMap((prewarm, index) =>
      issuesOf(prewarmBody(harness, prewarm), dialects, contract).map(({ path, message }) => ({
        path: `prewarm.${harness.id}[${index}].request${path === "" ? "" : `.${path}`}`,
        message,
      })),
    ),
  );
}

function issuesOf(body: object, dialects: readonly Dialect[], contract?: ContractSettings): readonly Issue[] {
  const parsed = parseRunRequest(body, contract, dialects);
  if (!parsed.ok) return parsed.issues;
  const { boundary, issues } = normaliseBoundary(parsed.request.sandboxPermission);
  if (issues.length > 0 || boundary.network.mode !== "on") return issues;
  const message =
    'must be "off" or an allowlist: the network of an agent that belongs to no run yet is closed, and an open one can\'t be';
  return [{ path: "sandboxPermission.network", message }];
}
