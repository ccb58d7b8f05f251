import { type AcceptedPlan, normaliseBoundary, type Plan, planRun } from "../boundary/index.js";
import { type Issue, parseRunRequest, promptOf, type RunRequest } from "../contract/index.js";
import { BoundaryRefused, RequestInvalid } from "../errors.js";
import type { ActorKinds } from "../plugin/index.js";
import type { Registry } from "../registry/index.js";
import { isPattern } from "./permission.js";

/** A request that may start: every actor in it covers what its boundary requires. */
export interface Admitted {
  readonly request: RunRequest;
  readonly plan: AcceptedPlan<ActorKinds>;
}

/**
 * Stop 1: the body as a request.
 * @throws RequestInvalid
 */
export function parse(body: unknown): RunRequest {
  const parsed = parseRunRequest(body);
  if (!parsed.ok) throw new RequestInvalid(parsed.issues);
  return parsed.request;
}

/**
 * Stop 2: the plan, accepted or refused, as pure as `planRun`.
 * @throws RequestInvalid for a boundary that can't be read: refusing it by gaps would guess what it meant.
 */
export function plan(request: RunRequest, cast: Awaited<ReturnType<Registry["cast"]>>): Plan<ActorKinds> {
  const { boundary, issues } = normaliseBoundary(request.sandboxPermission);
  if (issues.length > 0) throw new RequestInvalid(issues);
  return planRun(request, boundary, cast, [...promptIssues(request), ...ruleIssues(request)]);
}

/**
 * Stops 1 and 2 of a run.
 * @throws RequestInvalid, BoundaryRefused
 */
export async function admit(body: unknown, registry: Registry): Promise<Admitted> {
  const request = parse(body);
  const decided = plan(request, await registry.cast());
  if (decided.accepted) return { request, plan: decided };
  if (decided.gaps.length > 0) throw new BoundaryRefused(decided.gaps, decided.issues);
  throw new RequestInvalid(decided.issues);
}

/** A rule that could never match would look like protection. */
function ruleIssues({ permissions }: RunRequest): Issue[] {
  return (permissions.rules ?? []).flatMap(({ pattern }, index) =>
    isPattern(pattern)
      ? []
      : [
          {
            path: `permissions.rules[${index}].pattern`,
            message: "must be a tool's Name, or Name(prefix:*)",
          },
        ],
  );
}

function promptIssues(request: RunRequest): Issue[] {
  if (promptOf(request.messages).kind !== "none") return [];
  return [{ path: "messages", message: "No user message to send (prompt/messages empty)." }];
}
