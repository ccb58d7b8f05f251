import type {
  Denier,
  McpServer,
  Permission,
  PermissionMode,
  RunRequest,
  Warning,
} from "@ambit/core/contract";
import type { Harness } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import type { PermissionCeiling } from "../../operator.js";
import { type PlannedRun, tokens } from "../../tokens.js";
import { RunTools } from "../tools/run-tools.js";
import type { CallSubject } from "../values/call.js";
import { classNamesOf, type KnownTools, toolsNamed, unusedRules } from "./known-tools.js";
import { type PatternMatcher, patternMatcher } from "./pattern.js";

/** The permission of each call of a run: the request's rules below the operator's ceiling. */
@injectable()
export class CallPermissions {
  readonly #request: RunRequest;
  readonly #harness: Harness;
  #known: KnownTools;

  constructor(
    @inject(tokens.run) { request, plan }: PlannedRun,
    @inject(tokens.permissionCeiling) private readonly ceiling: PermissionCeiling,
    @inject(RunTools) private readonly tools: RunTools,
  ) {
    this.#request = request;
    this.#harness = plan.harness.actor;
    this.#known = toolsNamed(request, this.#harness);
  }

  /** The names of all tools that are published to the agent. @returns a warning for each rule that matches none. */
  learn(published: Iterable<string>): readonly Warning[] {
    const { own, published: before } = this.#known;
    this.#known = { own, published: new Set([...before, ...published]) };
    return unusedRules(this.#request, this.#harness.id, this.#known);
  }

  /** The permission in force for a call. One that the user fulfils isn't asked about: answering it is the consent. */
  effective(call: CallSubject, matches = matcherOf(call, this.#known)): Permission {
    const { ceiling } = this;
    const { tool, input } = call;
    const rules = { permissions: this.#request.permissions, ceiling, known: this.#known };
    const door = permissionOf(call, rules, matches);
    const permission = door === "ask" && this.tools.isByCaller(tool) ? "allow" : door;
    return strictest(permission, this.tools.policies.permission(tool, input) ?? "allow");
  }

  /** What the model reads of a call that is denied, and who denies it. */
  denial(call: CallSubject): { readonly why: string; readonly by: Denier } {
    const { name, tool, input } = call;
    const ofPolicy = this.tools.policies.denial(tool, input);
    if (ofPolicy !== undefined) return { why: ofPolicy, by: "policy" };
    const isAboveCeiling = isDeniedBy(this.ceiling, matcherOf(call, this.#known));
    return { why: `Tool '${name}' is denied by policy.`, by: isAboveCeiling ? "policy" : "rule" };
  }

  /** Whether the user may have to be asked about a call that the agent reports, as far as its tool is known. */
  mayAsk(name: string, input: unknown): boolean {
    const { servers } = this.tools;
    const tool = this.tools.byName.get(name);
    const call = { origin: "agent", name, input, tool } as const;
    if (tool !== undefined) return this.tools.isByCaller(tool) || this.effective(call) === "ask";
    if (servers.size === 0 && !this.#harness.supportsPermissionRequests) return false;
    if (this.effective(call) === "ask") return true;
    const [first] = servers.values();
    const matches = matcherOf({ ...call, server: first }, this.#known);
    return [...servers.values()].some((server) => this.effective({ ...call, server }, matches) === "ask");
  }
}

/** The input of a decision on a call. */
interface PermissionRules {
  readonly permissions: RunRequest["permissions"];
  readonly ceiling: PermissionCeiling;
  readonly known: KnownTools;
}

/**
 * The operator's ceiling first; then the tool's own permission, its MCP server's, the strictest matching rule, the
 * default. Pure.
 * @param matches as `matcherOf` made it, where it decides on the call for several servers.
 */
export function permissionOf(
  call: CallSubject,
  { permissions, ceiling, known }: PermissionRules,
  matches = matcherOf(call, known),
): Permission {
  const { name, tool, server } = call;
  // The class names and read-only hints of an agent count for its own tools alone.
  const isAgents = tool === undefined && server === undefined;
  if (isDeniedBy(ceiling, matches)) return "deny";
  return (
    tool?.permission ??
    byServer(server?.policy, name) ??
    byRule(permissions.rules ?? [], matches) ??
    byDefault(permissions.default, isAgents ? call.readOnly : tool?.readOnly)
  );
}

function isDeniedBy(ceiling: PermissionCeiling, matches: PatternMatcher): boolean {
  return ceiling === true || ceiling.some((pattern) => matches(pattern, "deny"));
}

/** Which rules match a call. It is the same for all servers. */
function matcherOf(call: CallSubject, known: KnownTools): PatternMatcher {
  const { name, input, tool, server, toolClass } = call;
  if (tool === undefined && server === undefined)
    return patternMatcher(call, classNamesOf(name, toolClass, known));
  // A published tool is decided on again where it is executed, by its actual arguments.
  return patternMatcher({ ...call, input: input ?? {} });
}

/** A table beats the permission of the whole server; a tool that it doesn't name never falls through to that. */
function byServer(policy: McpServer["policy"], name: string): Permission | undefined {
  const { toolPermissions, newToolPermission, permission } = policy ?? {};
  if (toolPermissions !== undefined && Object.hasOwn(toolPermissions, name)) return toolPermissions[name];
  return newToolPermission ?? (toolPermissions === undefined ? permission : "ask");
}

const strictness = ["deny", "ask", "allow"] as const satisfies readonly Permission[];

function strictest(one: Permission, other: Permission): Permission {
  return strictness.find((permission) => permission === one || permission === other) ?? one;
}

/** The permission of the strictest matching rule. */
function byRule(
  rules: NonNullable<RunRequest["permissions"]["rules"]>,
  matches: PatternMatcher,
): Permission | undefined {
  return strictness.find((effect) =>
    rules.some(({ pattern, permission }) => permission === effect && matches(pattern, effect)),
  );
}

function byDefault(mode: PermissionMode, readOnly: boolean | undefined): Permission {
  if (mode !== "allow_reads") return mode;
  return readOnly === true ? "allow" : "ask";
}
