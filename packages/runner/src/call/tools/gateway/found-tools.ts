import { type GatewayPolicy, isJsonObject, type JsonObject, parseBoundedJson } from "@ambit/core/contract";
import type { ToolOutcome } from "@ambit/core/plugin";
import { type GatewayRole, toolOf } from "./policy.js";

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
export function permittedOutcome(
  role: GatewayRole,
  policy: GatewayPolicy | undefined,
  outcome: ToolOutcome,
): ToolOutcome {
  if (outcome.status === "parked") return outcome;
  if (outcome.status === "failed") return { ...outcome, output: withoutSuggestions(policy, outcome.output) };
  return role === "search" ? searched(policy, outcome.output) : outcome;
}

function searched(policy: GatewayPolicy | undefined, output: string): ToolOutcome {
  const answer = parse(output);
  if (!isJsonObject(answer) || !Array.isArray(answer.results)) return unavailable;
  const found: readonly unknown[] = answer.results;
  const named = found.filter(isNamed);
  const isPermitted = ({ integration, tool }: NamedTool) => {
    const known = toolOf(policy, integration, tool);
    return known !== undefined && known.permission !== "deny";
  };
  const hidden = [...named.filter((one) => !isPermitted(one)).map(({ tool }) => tool), ...deniedIn(policy)];
  const results = named
    .filter(isPermitted)
    .slice(0, maxTools)
    .map((one) => ({
      integration: one.integration,
      tool: one.tool,
      ...(typeof one.name === "string" ? { name: without(hidden, one.name) } : {}),
      ...(typeof one.description === "string" ? { description: without(hidden, one.description) } : {}),
      ...(isJsonObject(one.input_schema) ? { input_schema: one.input_schema } : {}),
    }));
  const connected_integrations = Object.keys(policy?.integrations ?? {});
  const message = "No available tool matches. Search with other words.";
  const answered = { results, connected_integrations, ...(results.length === 0 ? { message } : {}) };
  return { status: "completed", output: JSON.stringify(answered) };
}

interface NamedTool extends JsonObject {
  readonly integration: string;
  readonly tool: string;
}

function isNamed(value: unknown): value is NamedTool {
  return isJsonObject(value) && typeof value.integration === "string" && typeof value.tool === "string";
}

/** An error may suggest other tools (`details.suggestions`): only permitted ones. */
function withoutSuggestions(policy: GatewayPolicy | undefined, output: string): string {
  const start = output.indexOf("{");
  const error = start === -1 ? undefined : parse(output.slice(start));
  if (!isJsonObject(error)) return without(deniedIn(policy), output);
  const { details, ...rest } = error;
  const suggested = isJsonObject(details) && Array.isArray(details.suggestions) ? details.suggestions : [];
  const suggestions = suggested
    .filter((one: unknown) => {
      if (!isNamed(one)) return typeof one === "string" && isPermittedName(policy, one);
      const known = toolOf(policy, one.integration, one.tool);
      return known !== undefined && known.permission !== "deny";
    })
    .slice(0, maxTools);
  const kept = suggestions.length === 0 ? rest : { ...rest, details: { suggestions } };
  return without(deniedIn(policy), output.slice(0, start) + JSON.stringify(kept));
}

function isPermittedName(policy: GatewayPolicy | undefined, name: string): boolean {
  const bare = name.slice(name.lastIndexOf(".") + 1);
  return Object.keys(policy?.integrations ?? {}).some((integration) => {
    const known = toolOf(policy, integration, bare);
    return known !== undefined && known.permission !== "deny";
  });
}

/** Names that no answer should mention. */
function deniedIn(policy: GatewayPolicy | undefined): readonly string[] {
  return Object.values(policy?.integrations ?? {}).flatMap(({ tools }) =>
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
