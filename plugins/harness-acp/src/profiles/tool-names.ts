import { parseBoundedJson } from "@ambit/core/plugin";
import type { ToolCallView, ToolIdentity } from "./profile.js";

/**
 * Extracts `{server}` and `{tool}` from the text that an agent shows for a call of an MCP tool. Patterns are such as
 * `mcp__{server}__{tool}` and `{tool} ({server} MCP Server)`. Only known servers match, so that one of the agent's own
 * tools with a similar name isn't mistaken for a published one.
 *
 * Use it only on text that the agent itself makes. The title of a shell command is the command, which the model
 * chooses: taken as a tool's name, it would run with that tool's permission.
 */
export function publishedTool(
  text: string | undefined,
  patterns: readonly string[],
  servers: readonly string[],
): ToolIdentity | undefined {
  if (text === undefined) return undefined;
  for (const server of byDescendingLength(servers)) {
    for (const pattern of patterns) {
      const [before = "", after = ""] = pattern.replace("{server}", () => server).split("{tool}");
      if (text.length <= before.length + after.length) continue;
      if (!text.startsWith(before) || !text.endsWith(after)) continue;
      return { name: text.slice(before.length, text.length - after.length), server };
    }
  }
  return undefined;
}

/** `docs` must not match the tools of `docs_internal`. */
function byDescendingLength(servers: readonly string[]): readonly string[] {
  return [...servers].sort((one, other) => other.length - one.length);
}

/** The JSON object that a call's text is, as some agents show its input. */
export function inputInWords({ text, textInput }: Pick<ToolCallView, "text" | "textInput">): unknown {
  return textInput ?? (text === undefined ? undefined : readInput(text));
}

/** White space before it, at most. */
const maxIndent = 256;

/** The JSON object that a text is. */
export function readInput(text: string): unknown {
  if (!text.slice(0, maxIndent).trimStart().startsWith("{")) return undefined;
  try {
    return parseBoundedJson(text);
  } catch {
    // Text that only begins like JSON: the call's input stays unknown.
    return undefined;
  }
}
