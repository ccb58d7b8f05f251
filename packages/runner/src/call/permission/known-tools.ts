import type { RunRequest, Warning } from "@ambit/core/contract";
import { type Harness, type OwnTools, type ToolClass, toolClasses } from "@ambit/core/plugin";
import { type ClassNames, patternName } from "./pattern.js";

/** The tools that a run's permissions can be about. */
export interface KnownTools {
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
export function classNamesOf(
  name: string,
  toolClass: ToolClass | undefined,
  { own, published }: KnownTools,
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
  return toolClasses.some((known) => known === word) || own === undefined || !Object.hasOwn(own, word);
}

/** Whether a pattern may be about a tool of the agent's own. */
export function mayMatchAgentTool(pattern: string, known: KnownTools): boolean {
  const name = patternName(pattern);
  return !known.published.has(name) || Object.values(wordsFor).some((words) => words.includes(name));
}

/** The classes among the agent's own tools that neither the default nor a rule for all of their calls allows. */
export function classesNotAllowed({ permissions }: RunRequest, known: KnownTools): readonly ToolClass[] {
  const { default: mode, rules = [] } = permissions;
  if (mode === "allow") return [];
  const { own } = known;
  const allowed = new Set(rules.flatMap((rule) => (rule.permission === "allow" ? [rule.pattern] : [])));
  const isAllowed = (name: string, toolClass: ToolClass) =>
    (mode === "allow_reads" && toolClass === "read") ||
    allowed.has(name) ||
    (classNamesOf(name, toolClass, known)?.allowing.some((word) => allowed.has(word)) ?? false);
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
export function toolsNamed(request: RunRequest, harness: Pick<Harness, "ownTools">): KnownTools {
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
export function unusedRules(request: RunRequest, agent: string, known: KnownTools): Warning[] {
  const { rules = [] } = request.permissions;
  const { own } = known;
  if (own === undefined) return [];
  const classes = toolClasses.filter((toolClass) => Object.values(own).includes(toolClass));
  const matchable = new Set([
    ...Object.keys(own),
    ...known.published,
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
