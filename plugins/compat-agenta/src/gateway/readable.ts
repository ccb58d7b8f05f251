import { isJsonObject, type JsonObject, parseBoundedJson } from "@ambit/core/contract";
import type { ToolOutcome } from "@ambit/core/plugin";
import { type GatewayRole, isVisible } from "./decide.js";
import type { GatewayPolicy } from "./policy-schema.js";

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
