import type { Boundary } from "../boundary/index.js";
import type { Gap, Issue, McpServer, RunRequest, ToolSpec } from "../contract/index.js";
import type {
  Harness,
  Rootfs,
  SandboxBackend,
  ToolDelivery,
  ToolExecutor,
  ToolSource,
} from "../plugin/index.js";
import { asked } from "./asked.js";
import type { PlannedActor, Probed } from "./candidates.js";
import { credentialGaps } from "./credentials.js";
import { gapsOf } from "./gaps.js";
import type { Requirement } from "./requirements.js";

/** A choice, or the issues that say why there is none. */
export interface Choice<Chosen> {
  readonly chosen: Chosen;
  readonly issues: readonly Issue[];
}

/** The harness by id or alias; without a name, the first configured. Whether it can run the request is checked later. */
export function chooseHarness(
  request: RunRequest,
  harnesses: readonly Probed<Harness>[],
): Choice<Probed<Harness> | undefined> {
  const named = request.harness;
  const chosen =
    named === undefined
      ? harnesses[0]
      : // An id wins over another harness's alias.
        (harnesses.find(({ actor }) => actor.id === named) ??
        harnesses.find(({ actor }) => actor.aliases.includes(named)));
  if (chosen !== undefined) return { chosen, issues: [] };
  const loaded = list(harnesses.map(({ actor }) => actor.id));
  const wanted = named === undefined ? "no harness is loaded" : `unknown harness '${named}'`;
  return {
    chosen: undefined,
    issues: [{ path: "harness", message: `${wanted}; expected one of ${loaded}` }],
  };
}

/** The executor for each kind of tool in the request. */
export function chooseExecutors(
  request: RunRequest,
  executors: readonly Probed<ToolExecutor>[],
): Choice<readonly PlannedActor<ToolExecutor, ToolSpec>[]> {
  const byKind = firstBy<ToolExecutor, ToolSpec>(executors, ({ kind }) => kind);
  const issues: Issue[] = [];
  for (const [index, tool] of request.customTools.entries()) {
    const part = byKind.get(tool.kind);
    if (part === undefined) {
      const loaded = list([...byKind.keys()]);
      const message = `no loaded plugin executes tools of kind '${tool.kind}'; expected one of ${loaded}`;
      issues.push({ path: `customTools[${index}].kind`, message });
      continue;
    }
    const { actor } = part.probed;
    const found = asked(actor, "issues", () => actor.issues({ tool, request }));
    // `gaps` and the run only get tools without an issue.
    if (found.length === 0) part.uses.push(tool);
    for (const { path, message } of found) {
      issues.push({ path: path === "" ? `customTools[${index}]` : `customTools[${index}].${path}`, message });
    }
  }
  return { chosen: [...byKind.values()].filter(({ uses }) => uses.length > 0), issues };
}

export function chooseToolSources(
  request: RunRequest,
  toolSources: readonly Probed<ToolSource>[],
): Choice<readonly PlannedActor<ToolSource, McpServer>[]> {
  const byConnection = firstBy<ToolSource, McpServer>(toolSources, ({ connection }) => connection);
  const issues: Issue[] = [];
  for (const [index, server] of request.mcpServers.entries()) {
    const part = byConnection.get(server.connection.type);
    if (part === undefined) {
      const message = `no loaded plugin connects to MCP servers over ${server.connection.type}: load one, or remove the server`;
      issues.push({ path: `mcpServers[${index}].connection.type`, message });
      continue;
    }
    const { actor } = part.probed;
    const found = asked(actor, "issues", () => actor.issues(server));
    if (found.length === 0) part.uses.push(server);
    for (const { path, message } of found) {
      issues.push({ path: `mcpServers[${index}].${path}`, message });
    }
  }
  return { chosen: [...byConnection.values()].filter(({ uses }) => uses.length > 0), issues };
}

/** The first configured delivery, when there is anything to deliver. */
export function chooseDelivery(
  request: RunRequest,
  deliveries: readonly Probed<ToolDelivery>[],
): Choice<Probed<ToolDelivery> | undefined> {
  if (request.customTools.length === 0 && request.mcpServers.length === 0)
    return { chosen: undefined, issues: [] };
  const chosen = deliveries[0];
  if (chosen !== undefined) return { chosen, issues: [] };
  const path = request.customTools.length > 0 ? "customTools" : "mcpServers";
  return {
    chosen: undefined,
    issues: [{ path, message: "no loaded plugin delivers tools to an agent: load one, such as mcp-http" }],
  };
}

/** The named sandbox, or the first configured one without a gap; if there is none, the gaps of each. */
export function chooseSandbox(
  request: RunRequest,
  sandboxes: readonly Probed<SandboxBackend>[],
  boundary: Boundary,
  required: readonly Requirement[],
): Choice<Probed<SandboxBackend> | undefined> & {
  readonly gaps: readonly Gap[];
  readonly rootfs: Rootfs;
} {
  const candidates =
    request.sandbox === undefined
      ? sandboxes
      : sandboxes.filter(({ actor }) => actor.name === request.sandbox);
  if (candidates.length === 0) {
    const loaded = list(sandboxes.map(({ actor }) => actor.name));
    const wanted =
      request.sandbox === undefined ? "no sandbox is loaded" : `unknown sandbox '${request.sandbox}'`;
    const issues = [{ path: "sandbox", message: `${wanted}; expected one of ${loaded}` }];
    return { chosen: undefined, issues, gaps: [], rootfs: "host" };
  }
  const gaps: Gap[] = [];
  for (const probed of candidates) {
    const lacks = [
      ...gapsOf({ probed, use: undefined, boundary, required, bound: "all" }),
      ...credentialGaps(request, probed, boundary, required),
    ];
    if (lacks.length === 0)
      return { chosen: probed, issues: [], gaps: [], rootfs: probed.actor.rootfs ?? "host" };
    gaps.push(...lacks);
  }
  return { chosen: undefined, issues: [], gaps, rootfs: candidates[0]?.actor.rootfs ?? "host" };
}

/** The first configured actor for each key. */
function firstBy<A, Use>(
  actors: readonly Probed<A>[],
  keyOf: (actor: A) => string,
): Map<string, { readonly probed: Probed<A>; readonly uses: Use[] }> {
  const first = new Map<string, { readonly probed: Probed<A>; readonly uses: Use[] }>();
  for (const probed of actors) {
    const key = keyOf(probed.actor);
    if (!first.has(key)) first.set(key, { probed, uses: [] });
  }
  return first;
}

function list(names: readonly string[]): string {
  return names.length === 0 ? "(none loaded)" : names.join(", ");
}
