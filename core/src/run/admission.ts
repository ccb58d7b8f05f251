import {
  type AcceptedPlan,
  type Cast,
  normaliseBoundary,
  type Plan,
  planRun,
  requirementsOf,
} from "../boundary/index.js";
import {
  type ContractSettings,
  type Issue,
  parseRunRequest,
  promptOf,
  type RunRequest,
  type Warning,
} from "../contract/index.js";
import { BoundaryRefused, RequestInvalid } from "../errors.js";
import type { ActorKinds, Harness } from "../plugin/index.js";
import type { Registry } from "../registry/index.js";
import { isPattern, patternName } from "./permission/pattern.js";
import type { PermissionCeiling } from "./permission/permission.js";

/** A request that may start: every actor in it covers what its boundary requires. */
export interface Admitted {
  readonly request: RunRequest;
  readonly plan: AcceptedPlan<ActorKinds>;
  /** What of the request has no effect, or not the one it seems to have. */
  readonly warnings: readonly Warning[];
}

/** What the operator says of every request. */
export interface AdmissionRules {
  readonly permissionCeiling: PermissionCeiling;
  /** Default: no unknown key is ignored. */
  readonly contract?: ContractSettings;
}

/**
 * Stop 1: the body as a request.
 * @throws RequestInvalid
 */
export function parse(body: unknown, contract?: ContractSettings): Omit<Admitted, "plan"> {
  const parsed = parseRunRequest(body, contract);
  if (!parsed.ok) throw new RequestInvalid(parsed.issues);
  return { request: parsed.request, warnings: parsed.warnings ?? [] };
}

/**
 * Stop 2: the plan, accepted or refused, as pure as `planRun`.
 * @throws RequestInvalid for a boundary that can't be read: refusing it by gaps would guess what it meant.
 */
export function plan(
  request: RunRequest,
  cast: Cast<ActorKinds>,
  ceiling: PermissionCeiling,
): Plan<ActorKinds> {
  const { boundary, issues } = normaliseBoundary(request.sandboxPermission);
  if (issues.length > 0) throw new RequestInvalid(issues);
  const decided = planRun(request, boundary, cast, [...promptIssues(request), ...ruleIssues(request)]);
  if (!decided.accepted) return decided;
  const unheld = unheldIssues(request, ceiling, decided.harness.actor);
  return unheld.length === 0 ? decided : { accepted: false, gaps: [], issues: unheld };
}

/**
 * Stops 1 and 2 of a run.
 * @throws RequestInvalid, BoundaryRefused
 */
export async function admit(
  body: unknown,
  registry: Registry,
  { permissionCeiling, contract }: AdmissionRules,
): Promise<Admitted> {
  const { request, warnings } = parse(body, contract);
  // What requires nothing needs no proof: it isn't kept waiting for the probes.
  const cast = requiresNothing(request) ? registry.castAsSeen() : await registry.cast();
  const decided = plan(request, cast, permissionCeiling);
  if (decided.accepted) return { request, plan: decided, warnings };
  if (decided.gaps.length > 0) throw new BoundaryRefused(decided.gaps, decided.issues);
  throw new RequestInvalid(decided.issues);
}

function requiresNothing(request: RunRequest): boolean {
  const { boundary } = normaliseBoundary(request.sandboxPermission);
  return requirementsOf(boundary, request).length === 0;
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

/** What an agent that asks nobody before it uses its own tools can't be kept from: never a silent pass. */
function unheldIssues(request: RunRequest, ceiling: PermissionCeiling, harness: Harness): Issue[] {
  if (harness.asksForOwnTools) return [];
  const message = (what: string) =>
    `${harness.id} asks nobody before it uses a tool of its own, so ${what} can't be held: remove it, or use a harness that asks (a tool of an MCP server is known by mcpServers[].policy.tools.names)`;
  // A name that isn't published may be one of the agent's own; of MCP servers only the included tools are known yet.
  const published = new Set([
    ...request.customTools.map(({ name }) => name),
    ...request.mcpServers.flatMap(({ policy }) => policy?.tools?.names ?? []),
  ]);
  const mayBeOwn = (pattern: string) => !published.has(patternName(pattern));
  const rules = (request.permissions.rules ?? []).flatMap(({ pattern, permission }, index) =>
    permission !== "allow" && mayBeOwn(pattern)
      ? [{ path: `permissions.rules[${index}].pattern`, message: message(`a rule for '${pattern}'`) }]
      : [],
  );
  const denials = ceiling === true ? ["every tool"] : ceiling.filter(mayBeOwn);
  if (denials.length === 0) return rules;
  return [...rules, { path: "harness", message: message(`this runner's denial of ${denials.join(", ")}`) }];
}

function promptIssues(request: RunRequest): Issue[] {
  if (promptOf(request.messages).kind !== "none") return [];
  return [{ path: "messages", message: "No user message to send (prompt/messages empty)." }];
}
