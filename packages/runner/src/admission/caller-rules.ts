/** What the operator lets a caller do, and what the boundary of its requests must restrict at least. */

import { type Boundary, type Candidates, listsWideRanges, type Probed, RequestInvalid } from "@ambit/core";
import {
  type filesystemModes,
  type Issue,
  isJsonObject,
  type networkModes,
  projectOf,
  type RunRequest,
  type Warning,
} from "@ambit/core/contract";
import type { Actor } from "@ambit/core/plugin";
import { z } from "zod";
import type { PermissionCeiling } from "../operator.js";
import type { CallersTrace } from "../parse/callers-trace.js";

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

const most = (what: string) =>
  z
    .number()
    .positive()
    .optional()
    .meta({ description: `${what} that a request may ask for at most, and must name.` });

/** The least that the boundary of a request must restrict. */
export const minimumBoundarySchema = z.strictObject({
  network: z.enum(["allowlist", "off"]).optional().meta({
    description:
      "`allowlist`: an allowlist whose ranges hold less than a sixteenth of the IPv4 addresses and of the public IPv6 addresses, or `off`. `off`: only that.",
  }),
  filesystem: z.enum(["workspace", "readonly", "off"]).optional().meta({
    description: "This mode, or a stricter one: `workspace`, `readonly`, `off`.",
  }),
  resources: z
    .strictObject({
      memoryMb: most("MiB of memory"),
      processes: most("Processes"),
      cpus: most("Processors"),
      diskMb: most("MiB of disk"),
    })
    .optional(),
  secrets: z
    .literal("hidden")
    .optional()
    .meta({ description: "No credential may be visible in the sandbox." }),
  enforcement: z.literal("strict").optional().meta({ description: "`best_effort` is refused." }),
});
export type MinimumBoundary = z.output<typeof minimumBoundarySchema>;

/**
 * What a request's boundary lacks, one issue for each rule that it is below. Pure.
 * @param whose names the rules' owner: "this server", "this token".
 */
export function belowMinimum(boundary: Boundary, minimum: MinimumBoundary, whose: string): readonly Issue[] {
  const issue = (field: string, rule: string, value: unknown, fix: string): Issue => ({
    path: `sandboxPermission.${field}`,
    message: `is below the rule \`require.${rule}\` of ${whose} (${JSON.stringify(value)}): ${fix}`,
  });
  const issues: Issue[] = [];
  const { network, filesystem, resources = {}, secrets, enforcement } = minimum;
  if (network !== undefined && isLess(networkStrictness, boundary.network.mode, network)) {
    const fix = network === "off" ? 'send "off"' : 'send an allowlist, or "off"';
    issues.push(issue("network", "network", network, fix));
  }
  if (network !== undefined && listsWideRanges(boundary.network.rules)) {
    const fix = "list the destinations; its ranges hold a sixteenth of all addresses, or more";
    issues.push(issue("network.allowlist", "network", network, fix));
  }
  if (filesystem !== undefined && isLess(filesystemStrictness, boundary.filesystem.mode, filesystem))
    issues.push(
      issue("filesystem", "filesystem", filesystem, `send ${JSON.stringify(filesystem)}, or a stricter mode`),
    );
  for (const name of ["memoryMb", "processes", "cpus", "diskMb"] as const) {
    const max = resources[name];
    const requested = boundary.resources[name];
    if (max !== undefined && (requested === undefined || requested > max))
      issues.push(issue(`resources.${name}`, `resources.${name}`, max, `send ${max} or less`));
  }
  if (secrets === "hidden" && boundary.secrets !== "hidden")
    issues.push(issue("secrets", "secrets", secrets, 'send "hidden"'));
  if (enforcement === "strict" && boundary.enforcement !== "strict")
    issues.push(issue("enforcement", "enforcement", enforcement, 'send "strict", or leave it out'));
  return issues;
}

/** From the least to the most restricted. */
const networkStrictness: readonly (typeof networkModes)[number][] = ["on", "allowlist", "off"];
const filesystemStrictness: readonly (typeof filesystemModes)[number][] = [
  "on",
  "workspace",
  "readonly",
  "off",
];

function isLess<Mode>(order: readonly Mode[], mode: Mode, than: Mode): boolean {
  return order.indexOf(mode) < order.indexOf(than);
}
