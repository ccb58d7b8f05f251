import {
  isJsonObject,
  type JsonObject,
  limits,
  type Permission,
  parseBoundedJson,
  permissionSchema,
  type RunRequest,
  type ToolSpec,
} from "@ambit/core/contract";
import type { ToolDecision, ToolOutcome, ToolPolicy } from "@ambit/core/plugin";
import { z } from "zod";

/** What one tool of an integration may do. */
export interface GatewayTool {
  readonly permission: Permission;
  /** Null or absent: unknown. */
  readonly readOnly?: boolean | null;
}

function isTool(value: unknown): value is GatewayTool {
  if (!isJsonObject(value)) return false;
  const { permission, readOnly = null, ...unknown } = value;
  return (
    permissionSchema.safeParse(permission).success &&
    (readOnly === null || typeof readOnly === "boolean") &&
    Object.keys(unknown).length === 0
  );
}

const toolsSchema = z.custom<Readonly<Record<string, GatewayTool>>>(
  (table) => {
    if (!isJsonObject(table)) return false;
    const tools = Object.values(table);
    return tools.length <= limits.entries && tools.every(isTool);
  },
  {
    error:
      'must have {permission: "allow" | "ask" | "deny", readOnly?} by the name of a tool, 10,000 at most',
  },
);

const nameSchema = z.string().regex(/\S/, "must not be blank");

const integrationSchema = z.strictObject({
  /** Who serves it, such as `composio`. */
  provider: nameSchema,
  /** The user's connection to it. */
  connection: nameSchema,
  /** The version of its tools: a fixed one, since the permissions are those of that version. */
  toolkitVersion: nameSchema.refine((version) => version.trim().toLowerCase() !== "latest", {
    error: "must be a fixed version, not latest",
  }),
  tools: toolsSchema,
});

/** Which tools of which integrations the gateway's tools may find and run. What it doesn't name is denied. */
export const gatewayPolicySchema = z.strictObject({
  integrations: z.record(nameSchema, integrationSchema).meta({
    description:
      "By the integration's name: `{provider, connection, toolkitVersion, tools: {NAME: {permission, readOnly}}}`. A tool that isn't named is denied. The agent never sees it.",
  }),
});
export type GatewayPolicy = z.infer<typeof gatewayPolicySchema>;

/** What a tool of the gateway does: finds tools of integrations, or runs one. */
type GatewayRole = "search" | "run";

const roles: ReadonlyMap<string | undefined, GatewayRole> = new Map([
  ["gateway.search", "search"],
  ["gateway.run", "run"],
]);

function gatewayRoleOf(tool: ToolSpec): GatewayRole | undefined {
  return roles.get(tool.callRef);
}

/** Unknown and denied ones get the same sentence, so that the policy can't be explored. */
const notAvailable: ToolDecision = {
  kind: "denied",
  reason: "This integration or tool isn't available here. Use search_tools to find the tools that are.",
};

/** What the policy says about a call of a gateway's tool. What it doesn't name is denied. Pure. */
export function gatewayDecision(role: GatewayRole, policy: GatewayPolicy, input: unknown): ToolDecision {
  if (!isJsonObject(input)) return malformed("The arguments must be an object.");
  return role === "search" ? searchDecision(policy, input) : runDecision(policy, input);
}

function searchDecision({ integrations }: GatewayPolicy, { query, integration }: JsonObject): ToolDecision {
  if (typeof query !== "string") return malformed("'query' must be a text.");
  if (integration !== undefined && typeof integration !== "string")
    return malformed("'integration' must be the name of an integration.");
  const searched = Object.entries(integrations).filter(
    ([name]) => integration === undefined || name === integration,
  );
  const [first] = searched;
  if (first === undefined) return notAvailable;
  const context = {
    provider: first[1].provider,
    integration,
    toolkit_versions: Object.fromEntries(
      searched.map(([name, { toolkitVersion }]) => [name, toolkitVersion]),
    ),
  };
  return { kind: "permitted", permission: "allow", context, details: {} };
}

function runDecision(
  policy: GatewayPolicy,
  { integration, tool, arguments: toolArguments }: JsonObject,
): ToolDecision {
  if (typeof integration !== "string") return malformed("'integration' must be the name of an integration.");
  if (typeof tool !== "string") return malformed("'tool' must be the name of a tool.");
  if (!isJsonObject(toolArguments))
    return malformed("'arguments' must be an object with the tool's arguments.");
  const permitted = toolOf(policy, integration, tool);
  const place = entryOf(policy.integrations, integration);
  if (permitted === undefined || place === undefined || permitted.permission === "deny") return notAvailable;
  const { provider, connection, toolkitVersion } = place;
  // Where the platform finds the tool comes from the policy, never from the model.
  const context = { provider, integration, connection, tool, toolkit_version: toolkitVersion };
  const { permission, readOnly = null } = permitted;
  const details = { display: `${integration}.${tool}`, integration, tool, readOnly };
  return { kind: "permitted", permission, context, details };
}

/** Whether the model may know of the tool: the policy names it and doesn't deny it. Pure. */
function isVisible(policy: GatewayPolicy, integration: string, tool: string): boolean {
  return (toolOf(policy, integration, tool)?.permission ?? "deny") !== "deny";
}

function toolOf({ integrations }: GatewayPolicy, integration: string, tool: string): GatewayTool | undefined {
  return entryOf(entryOf(integrations, integration)?.tools, tool);
}

/** `toString` and the like are in no table. */
function entryOf<Value>(table: Readonly<Record<string, Value>> | undefined, name: string): Value | undefined {
  return table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}

function malformed(problem: string): ToolDecision {
  return { kind: "malformed", problem };
}

/** The field `gatewayPolicy`, which the request was validated with. */
function policyIn(request: RunRequest): GatewayPolicy | undefined {
  return gatewayPolicySchema.optional().parse(Reflect.get(request, "gatewayPolicy"));
}

/** The request's `gatewayPolicy`, behind the tools that find and run what it permits. */
export const gatewayPolicy: ToolPolicy = {
  name: "agenta-gateway",

  // Without a policy, a tool of the gateway could run everything.
  issues: (request) => {
    if (policyIn(request) !== undefined) return [];
    return request.customTools.flatMap((tool, index) => {
      if (gatewayRoleOf(tool) === undefined) return [];
      const message = `'${tool.callRef}' needs a gatewayPolicy: without one, every tool behind it is denied`;
      return [{ path: `customTools[${index}].callRef`, message }];
    });
  },

  forRun: (request) => {
    const policy = policyIn(request) ?? { integrations: {} };
    return {
      decide: (tool, input) => {
        const role = gatewayRoleOf(tool);
        return role === undefined ? undefined : gatewayDecision(role, policy, input);
      },
      readable: (tool, outcome) => {
        const role = gatewayRoleOf(tool);
        return role === undefined ? outcome : readableOutcome(role, policy, outcome);
      },
    };
  },
};

/** Tools that one search passes on, and that an error suggests. */
const maxTools = 5;

const unavailable: ToolOutcome = {
  status: "failed",
  output: JSON.stringify({
    code: "tool_search_unavailable",
    message: "The search for tools gave no answer that can be read.",
    retryable: true,
    next_step: "Search again later, or continue without these tools.",
  }),
};

/** What the model may read of the platform's answer: nothing about a tool that the policy doesn't permit. Pure. */
export function readableOutcome(role: GatewayRole, policy: GatewayPolicy, outcome: ToolOutcome): ToolOutcome {
  if (outcome.status === "parked") return outcome;
  if (outcome.status === "failed")
    return { ...outcome, output: withPermittedSuggestions(policy, outcome.output) };
  return role === "search" ? searchOutcome(policy, outcome.output) : outcome;
}

function searchOutcome(policy: GatewayPolicy, output: string): ToolOutcome {
  const answer = parse(output);
  if (!isJsonObject(answer) || !Array.isArray(answer.results)) return unavailable;
  const matches: readonly unknown[] = answer.results;
  const tools = matches.filter(isToolMatch);
  const isPermitted = ({ integration, tool }: ToolMatch) => isVisible(policy, integration, tool);
  const unpermitted = tools.filter((match) => !isPermitted(match)).map(({ tool }) => tool);
  const hidden = [...unpermitted, ...deniedNames(policy)];
  const results = tools
    .filter(isPermitted)
    .slice(0, maxTools)
    .map(({ integration, tool, name, description, input_schema }) => ({
      integration,
      tool,
      ...(typeof name === "string" ? { name: without(hidden, name) } : {}),
      ...(typeof description === "string" ? { description: without(hidden, description) } : {}),
      ...(isJsonObject(input_schema) ? { input_schema } : {}),
    }));
  const connected_integrations = Object.keys(policy.integrations);
  const message = "No available tool matches. Search with other words.";
  const answered = { results, connected_integrations, ...(results.length === 0 ? { message } : {}) };
  return { status: "completed", output: JSON.stringify(answered) };
}

interface ToolMatch extends JsonObject {
  readonly integration: string;
  readonly tool: string;
}

function isToolMatch(value: unknown): value is ToolMatch {
  return isJsonObject(value) && typeof value.integration === "string" && typeof value.tool === "string";
}

/** An error may suggest other tools (`details.suggestions`): the model reads only of permitted ones. */
function withPermittedSuggestions(policy: GatewayPolicy, output: string): string {
  const start = output.indexOf("{");
  const error = start === -1 ? undefined : parse(output.slice(start));
  if (!isJsonObject(error)) return without(deniedNames(policy), output);
  const { details, ...others } = error;
  const all: readonly unknown[] =
    isJsonObject(details) && Array.isArray(details.suggestions) ? details.suggestions : [];
  const suggestions = all
    .filter((suggestion) => isPermittedSuggestion(policy, suggestion))
    .slice(0, maxTools);
  const readable = suggestions.length === 0 ? others : { ...others, details: { suggestions } };
  return without(deniedNames(policy), output.slice(0, start) + JSON.stringify(readable));
}

function isPermittedSuggestion(policy: GatewayPolicy, suggestion: unknown): boolean {
  if (isToolMatch(suggestion)) return isVisible(policy, suggestion.integration, suggestion.tool);
  if (typeof suggestion !== "string") return false;
  const tool = suggestion.slice(suggestion.lastIndexOf(".") + 1);
  return Object.keys(policy.integrations).some((integration) => isVisible(policy, integration, tool));
}

/** Names that no answer should mention. */
function deniedNames({ integrations }: GatewayPolicy): readonly string[] {
  return Object.values(integrations).flatMap(({ tools }) =>
    Object.entries(tools).flatMap(([name, { permission }]) => (permission === "deny" ? [name] : [])),
  );
}

/** The text with these names blanked. One pass over the text, whatever their number. */
function without(names: readonly string[], text: string): string {
  if (names.length === 0) return text;
  const hidden = new Set(names);
  return text.replaceAll(/[\p{L}\p{N}_]+/gu, (word) => (hidden.has(word) ? "…" : word));
}

function parse(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch {
    // Not JSON, or too much of it: the caller says so to the model.
    return undefined;
  }
}
