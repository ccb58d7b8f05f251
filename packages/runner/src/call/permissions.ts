/** Which permission a call has: the operator's ceiling, the tool, its server, the rules, the default. */

import type {
  Denier,
  McpServer,
  Permission,
  PermissionMode,
  RunRequest,
  Warning,
} from "@ambit/core/contract";
import { type Harness, type OwnTools, type ToolClass, toolClasses } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import type { PermissionCeiling } from "../operator.js";
import { type PlannedRun, tokens } from "../tokens.js";
import type { CallSubject } from "./call.js";
import { type ClassNames, type PatternMatcher, patternMatcher, patternName } from "./pattern.js";
import { RunTools } from "./run-tools.js";

/** The permission of each call of a run: the request's rules below the operator's ceiling. */
@injectable()
export class CallPermissions {
  readonly #request: RunRequest;
  readonly #harness: Harness;
  #toolNames: ToolNames;

  constructor(
    @inject(tokens.run) { request, plan }: PlannedRun,
    @inject(tokens.permissionCeiling) private readonly ceiling: PermissionCeiling,
    @inject(RunTools) private readonly tools: RunTools,
  ) {
    this.#request = request;
    this.#harness = plan.harness.actor;
    this.#toolNames = toolsNamed(request, this.#harness);
  }

  /** The names of all tools that are published to the agent. @returns a warning for each rule that matches none. */
  learn(published: Iterable<string>): readonly Warning[] {
    const { own, published: before } = this.#toolNames;
    this.#toolNames = { own, published: new Set([...before, ...published]) };
    return unusedRules(this.#request, this.#harness.id, this.#toolNames);
  }

  /** The permission in force for a call. One that the user fulfils isn't asked about: answering it is the consent. */
  effective(call: CallSubject, matches = matcherOf(call, this.#toolNames)): Permission {
    const { ceiling } = this;
    const { tool } = call;
    const rules = { permissions: this.#request.permissions, ceiling, toolNames: this.#toolNames };
    const door = permissionOf(call, rules, matches);
    const permission = door === "ask" && this.tools.isByCaller(tool) ? "allow" : door;
    return strictest(permission, this.#ofPolicy(call));
  }

  /** What the policy of its tool permits. Arguments that it can't read are a problem of the call, and need no permission. */
  #ofPolicy({ tool, input }: CallSubject): Permission {
    const decision = this.tools.policies.decide(tool, input);
    if (decision?.kind === "denied") return "deny";
    return decision?.kind === "permitted" ? decision.permission : "allow";
  }

  /** What the model reads of a call that is denied, and who denies it. */
  denial(call: CallSubject): { readonly why: string; readonly by: Denier } {
    const { name, tool, input } = call;
    const decision = this.tools.policies.decide(tool, input);
    if (decision?.kind === "denied") return { why: decision.reason, by: "policy" };
    const isAboveCeiling = isDeniedBy(this.ceiling, matcherOf(call, this.#toolNames));
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
    const matches = matcherOf({ ...call, server: first }, this.#toolNames);
    return [...servers.values()].some((server) => this.effective({ ...call, server }, matches) === "ask");
  }
}

/** The input of a decision on a call. */
interface PermissionRules {
  readonly permissions: RunRequest["permissions"];
  readonly ceiling: PermissionCeiling;
  readonly toolNames: ToolNames;
}

/**
 * The operator's ceiling first; then the tool's own permission, its MCP server's, the strictest matching rule, the
 * default. Pure.
 * @param matches as `matcherOf` made it, where it decides on the call for several servers.
 */
export function permissionOf(
  call: CallSubject,
  { permissions, ceiling, toolNames }: PermissionRules,
  matches = matcherOf(call, toolNames),
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
function matcherOf(call: CallSubject, toolNames: ToolNames): PatternMatcher {
  const { name, input, tool, server, toolClass } = call;
  if (tool === undefined && server === undefined)
    return patternMatcher(call, classNamesOf(name, toolClass, toolNames));
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

/** The tools that a run's permissions can be about. */
interface ToolNames {
  /** The agent's own; undefined when its harness doesn't list them. */
  readonly own: OwnTools | undefined;
  /** Names of the tools that are published to it, as far as they are known. */
  readonly published: ReadonlySet<string>;
}

/** Names for all tools of a class: ours, and those of Claude Code, which requests use for any agent. */
const wordsFor: Readonly<Record<ToolClass, readonly string[]>> = {
  shell: ["shell", "Bash"],
  edit: ["edit", "Edit", "Write"],
  read: ["read", "Read"],
  fetch: ["fetch", "WebFetch"],
};

/** @param toolClass the class that the agent reports for its tool; by default, the class of its name. */
function classNamesOf(
  name: string,
  toolClass: ToolClass | undefined,
  { own, published }: ToolNames,
): ClassNames | undefined {
  const does = toolClass ?? (own !== undefined && Object.hasOwn(own, name) ? own[name] : undefined);
  if (does === undefined || does === "other") return undefined;
  const restricting = wordsOf(does, own);
  return { restricting, allowing: restricting.filter((word) => !published.has(word)) };
}

function wordsOf(toolClass: ToolClass, own: OwnTools | undefined): readonly string[] {
  return wordsFor[toolClass].filter((word) => isClassWord(word, own));
}

/** A name of Claude Code's means just that tool where the agent has it. */
function isClassWord(word: string, own: OwnTools | undefined): boolean {
  return (
    toolClasses.some((toolClass) => toolClass === word) || own === undefined || !Object.hasOwn(own, word)
  );
}

/** Whether a pattern may be about a tool of the agent's own. */
export function mayMatchAgentTool(pattern: string, toolNames: ToolNames): boolean {
  const name = patternName(pattern);
  return !toolNames.published.has(name) || Object.values(wordsFor).some((words) => words.includes(name));
}

/** The classes among the agent's own tools that neither the default nor a rule for all of their calls allows. */
export function classesNotAllowed({ permissions }: RunRequest, toolNames: ToolNames): readonly ToolClass[] {
  const { default: mode, rules = [] } = permissions;
  if (mode === "allow") return [];
  const { own } = toolNames;
  const allowed = new Set(rules.flatMap((rule) => (rule.permission === "allow" ? [rule.pattern] : [])));
  const isAllowed = (name: string, toolClass: ToolClass) =>
    (mode === "allow_reads" && toolClass === "read") ||
    allowed.has(name) ||
    (classNamesOf(name, toolClass, toolNames)?.allowing.some((word) => allowed.has(word)) ?? false);
  // An agent whose tools aren't known may have any.
  return toolClasses.filter((toolClass) =>
    own === undefined
      ? !isAllowed(toolClass, toolClass)
      : Object.entries(own).some(([name, does]) => does === toolClass && !isAllowed(name, does)),
  );
}

/** The classes of its own tools that an agent uses unasked, although the request's default asks. */
export function unaskedClasses(
  request: RunRequest,
  harness: Pick<Harness, "ownTools" | "supportsPermissionRequests">,
): readonly ToolClass[] {
  if (harness.supportsPermissionRequests) return [];
  return classesNotAllowed(request, toolsNamed(request, harness));
}

/** What a request says about its tools. */
export function toolsNamed(request: RunRequest, harness: Pick<Harness, "ownTools">): ToolNames {
  const included = request.mcpServers.flatMap(({ policy }) => policy?.tools?.names ?? []);
  return {
    own: harness.ownTools,
    published: new Set([...request.customTools.map(({ name }) => name), ...included]),
  };
}

/** Whether a server of the request may have tools that aren't known before it is asked. */
export function hasUnnamedTools({ mcpServers }: RunRequest): boolean {
  return mcpServers.some(({ policy }) => policy?.tools?.mode !== "include");
}

/** Rules about a tool that the run doesn't have, and which therefore have no effect. */
export function unusedRules(request: RunRequest, agent: string, toolNames: ToolNames): Warning[] {
  const { rules = [] } = request.permissions;
  const { own } = toolNames;
  if (own === undefined) return [];
  const classes = toolClasses.filter((toolClass) => Object.values(own).includes(toolClass));
  const matchable = new Set([
    ...Object.keys(own),
    ...toolNames.published,
    ...classes.flatMap((toolClass) => wordsOf(toolClass, own)),
  ]);
  const tools = Object.keys(own);
  const instead =
    tools.length === 0
      ? `${agent} has no built-in tools`
      : `${agent}'s own tools are ${tools.join(", ")}; ${classes.join(", ")} name them by what they do`;
  return rules.flatMap(({ pattern }, index) =>
    matchable.has(patternName(pattern))
      ? []
      : [
          {
            path: `permissions.rules[${index}].pattern`,
            message: `'${pattern}' matches no tool of this run: ${instead}`,
          },
        ],
  );
}
