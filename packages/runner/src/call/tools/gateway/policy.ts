import {
  type GatewayPolicy,
  type GatewayTool,
  isJsonObject,
  type JsonObject,
  type Permission,
  type ToolSpec,
} from "@ambit/core/contract";

/** What a tool of the gateway does: finds tools of integrations, or runs one. */
export type GatewayRole = "search" | "run";

/** A call of a gateway's tool, as the policy sees it. */
export type GatewayCall =
  /** The arguments have another shape: nothing can be decided on them. */
  | { readonly kind: "malformed"; readonly problem: string }
  | { readonly kind: "denied"; readonly why: string }
  | {
      readonly kind: "known";
      readonly permission: Permission;
      /** Where the platform finds it. Comes from the policy, never from the model. */
      readonly context: JsonObject;
      /** What the user reads of it. Empty for a search. */
      readonly details: JsonObject;
    };

const roles: ReadonlyMap<string | undefined, GatewayRole> = new Map([
  ["gateway.search", "search"],
  ["gateway.run", "run"],
]);

export function gatewayRoleOf(tool: ToolSpec | undefined): GatewayRole | undefined {
  return roles.get(tool?.callRef);
}

/** Unknown and denied ones get the same sentence, so that the policy can't be explored. */
const notAvailable =
  "This integration or tool isn't available here. Use search_tools to find the tools that are.";

/** What the policy says about a call. What it doesn't name is denied. Pure. */
export function gatewayCall(
  role: GatewayRole,
  policy: GatewayPolicy | undefined,
  input: unknown,
): GatewayCall {
  if (!isJsonObject(input)) return malformed("The arguments must be an object.");
  return role === "search" ? searchCall(policy, input) : runCall(policy, input);
}

function searchCall(policy: GatewayPolicy | undefined, { query, integration }: JsonObject): GatewayCall {
  if (typeof query !== "string") return malformed("'query' must be a text.");
  if (integration !== undefined && typeof integration !== "string")
    return malformed("'integration' must be the name of an integration.");
  const all = Object.entries(policy?.integrations ?? {});
  const named = all.filter(([name]) => integration === undefined || name === integration);
  const [first] = named;
  if (first === undefined) return { kind: "denied", why: notAvailable };
  const context = {
    provider: first[1].provider,
    integration,
    toolkit_versions: Object.fromEntries(named.map(([name, { toolkitVersion }]) => [name, toolkitVersion])),
  };
  return { kind: "known", permission: "allow", context, details: {} };
}

function runCall(policy: GatewayPolicy | undefined, input: JsonObject): GatewayCall {
  const { integration, tool, arguments: given } = input;
  if (typeof integration !== "string") return malformed("'integration' must be the name of an integration.");
  if (typeof tool !== "string") return malformed("'tool' must be the name of a tool.");
  if (!isJsonObject(given)) return malformed("'arguments' must be an object with the tool's arguments.");
  const found = toolOf(policy, integration, tool);
  const place = ownEntry(policy?.integrations, integration);
  if (found === undefined || place === undefined || found.permission === "deny")
    return { kind: "denied", why: notAvailable };
  const { provider, connection, toolkitVersion } = place;
  const context = { provider, integration, connection, tool, toolkit_version: toolkitVersion };
  const { permission, readOnly = null } = found;
  const details = { display: `${integration}.${tool}`, integration, tool, readOnly };
  return { kind: "known", permission, context, details };
}

/** Undefined for what the policy doesn't name. Pure. */
export function toolOf(
  policy: GatewayPolicy | undefined,
  integration: string,
  tool: string,
): GatewayTool | undefined {
  return ownEntry(ownEntry(policy?.integrations, integration)?.tools, tool);
}

function ownEntry<Value>(
  table: Readonly<Record<string, Value>> | undefined,
  name: string,
): Value | undefined {
  return table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}

function malformed(problem: string): GatewayCall {
  return { kind: "malformed", problem };
}
