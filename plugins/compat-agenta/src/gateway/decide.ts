import { isJsonObject, type JsonObject, type ToolSpec } from "@ambit/core/contract";
import type { ToolDecision } from "@ambit/core/plugin";
import type { GatewayPolicy, GatewayTool } from "./policy-schema.js";

/** What a tool of the gateway does: finds tools of integrations, or runs one. */
export type GatewayRole = "search" | "run";

const roles: ReadonlyMap<string | undefined, GatewayRole> = new Map([
  ["gateway.search", "search"],
  ["gateway.run", "run"],
]);

export function gatewayRoleOf(tool: ToolSpec): GatewayRole | undefined {
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
export function isVisible(policy: GatewayPolicy, integration: string, tool: string): boolean {
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
