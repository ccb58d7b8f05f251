import type { ToolIdentity } from "./profile.js";

/**
 * Reads `{server}` and `{tool}` out of a text that an agent shows for a call of an MCP tool.
 * Patterns are such as `mcp__{server}__{tool}` and `{tool} ({server} MCP Server)`; only known servers match,
 * so that a tool of the agent's own with a similar name isn't taken for a published one.
 *
 * Use it only on a text that the agent itself makes. The title of a shell command is the command, which the model
 * chooses: taken for a tool's name, it would be run with that tool's permission.
 */
export function publishedTool(
  text: string | undefined,
  patterns: readonly string[],
  servers: readonly string[],
): ToolIdentity | undefined {
  if (text === undefined) return undefined;
  for (const server of longestFirst(servers)) {
    for (const pattern of patterns) {
      const [before = "", after = ""] = pattern.replace("{server}", () => server).split("{tool}");
      if (text.length <= before.length + after.length) continue;
      if (!text.startsWith(before) || !text.endsWith(after)) continue;
      return { name: text.slice(before.length, text.length - after.length), server };
    }
  }
  return undefined;
}

/** `docs` must not take the tools of `docs_internal`. */
function longestFirst(servers: readonly string[]): readonly string[] {
  return [...servers].sort((one, other) => other.length - one.length);
}

/** A JSON object in words, as some agents show a call's input. */
export function inputInWords(text: string | undefined): unknown {
  if (text === undefined || !text.trimStart().startsWith("{")) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Words that only begin like JSON: the call's input stays unknown.
    return undefined;
  }
}
