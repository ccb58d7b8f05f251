import { type Candidates, type Probed, RequestInvalid } from "@ambit/core";
import { type Issue, isJsonObject, projectOf, type RunRequest, type Warning } from "@ambit/core/contract";
import type { Actor } from "@ambit/core/plugin";
import type { PermissionCeiling } from "../operator.js";
import type { CallersTrace } from "../parse/callers-trace.js";
import type { MinimumBoundary } from "./minimum-boundary.js";

/** What the operator lets one caller do. A caller is a tenant, which has one project. */
export interface CallerRules {
  /** The project of all its runs; its requests can't name another. */
  readonly project: string;
  /** Calls that its requests can't allow, in addition to those that the operator denies to all. */
  readonly permissionCeiling: PermissionCeiling;
  /** What the boundaries of its requests restrict at least, in addition to the operator's minimum. */
  readonly minimum?: MinimumBoundary;
  /** Names of the sandboxes it may use. Default: all that are loaded. */
  readonly sandboxes?: readonly string[];
  /** Ids of the harnesses it may use. Default: all that are loaded. */
  readonly harnesses?: readonly string[];
}

/**
 * The request in the caller's own project. Pure.
 * @throws RequestInvalid where it names another project
 */
export function inCallersProject(request: RunRequest, { project }: CallerRules): RunRequest {
  const ofContext = isJsonObject(request.runContext?.project) ? request.runContext.project.id : undefined;
  const issues: Issue[] = [
    ["projectId", request.projectId] as const,
    ["runContext.project.id", ofContext] as const,
  ].flatMap(([path, given]) =>
    given === undefined || given === null || given === "" || given === project
      ? []
      : [
          {
            path,
            message: "is not the project of this token: leave it out, or send the token of that project",
          },
        ],
  );
  if (issues.length > 0) throw new RequestInvalid(issues);
  return { ...request, projectId: project };
}

/**
 * Where several tenants share a server, a session without a project would be everyone's: it ends with its run. Pure.
 */
export function withoutSharedSession(request: RunRequest): {
  readonly request: RunRequest;
  readonly warnings: readonly Warning[];
} {
  if (request.sessionId === undefined || projectOf(request) !== undefined) return { request, warnings: [] };
  const message = "isn't kept: this server has several tenants, and the request names no projectId";
  return { request: { ...request, sessionId: undefined }, warnings: [{ path: "sessionId", message }] };
}

/** The actors that the caller may use. Pure. */
export function candidatesFor(candidates: Candidates, { sandboxes, harnesses }: CallerRules): Candidates {
  return {
    ...candidates,
    sandboxes: only(candidates.sandboxes, sandboxes, ({ name }) => name),
    harnesses: only(candidates.harnesses, harnesses, ({ id }) => id),
  };
}

function only<A extends Actor<never>>(
  all: readonly Probed<A>[],
  names: readonly string[] | undefined,
  nameOf: (actor: A) => string,
): readonly Probed<A>[] {
  return names === undefined ? all : all.filter(({ actor }) => names.includes(nameOf(actor)));
}

/** The union of two denials. Pure. */
export function strictestCeiling(one: PermissionCeiling, other: PermissionCeiling): PermissionCeiling {
  return one === true || other === true ? true : [...one, ...other];
}

export interface RunOptions {
  /** The run's id, unless the request has one. Default: a random id. */
  readonly runId?: string;
  /** Whether the result includes the events. A stream's doesn't: it sent them before. */
  readonly keepsEvents: boolean;
  /** The caller's trace where the request's `context` has none: headers of its HTTP request. Default: none. */
  readonly trace?: CallersTrace;
  /** The caller that owns the run. Default: the operator. */
  readonly caller?: CallerRules;
}
