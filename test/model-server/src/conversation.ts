import type { ToolResult } from "./turn.js";

/** The relevant parts of a conversation, in order: each text part of the user, and tool results. */
export type ConversationEntry = { readonly userText: string } | { readonly toolResult: ToolResult };

/**
 * The current instruction, and the tool results for it.
 *
 * Only the last part that has text counts. Claude Code merges the messages after a cancelled or failed
 * turn into one, so joined parts would execute the cancelled instruction again.
 */
export function readConversation(entries: readonly ConversationEntry[]): {
  lastUserText: string;
  toolResults: readonly ToolResult[];
} {
  let lastUserText = "";
  let toolResults: ToolResult[] = [];
  for (const entry of entries) {
    if ("toolResult" in entry) {
      toolResults.push(entry.toolResult);
      continue;
    }
    const text = withoutAgentContext(entry.userText);
    if (text === "") continue;
    lastUserText = text;
    toolResults = [];
  }
  return { lastUserText, toolResults };
}

/** Agents add context as user text, always in a tag with its name. */
function withoutAgentContext(text: string): string {
  const rest = text.replace(/<system-reminder>[\s\S]*?<\/system-reminder>/g, "").trim();
  const wholeElement = /^<([A-Za-z][\w-]*)\b[^>]*>[\s\S]*<\/\1>$/;
  return wholeElement.test(rest) ? "" : rest;
}

/** A user message whose content is one string or a list of parts. Images and files are parts without a text. */
export function userEntries(content: unknown): readonly ConversationEntry[] {
  if (typeof content === "string") return [{ userText: content }];
  if (!Array.isArray(content)) return [];
  return content.flatMap((part: unknown) => {
    if (typeof part !== "object" || part === null || !("text" in part)) return [];
    return typeof part.text === "string" ? [{ userText: part.text }] : [];
  });
}

/** Readable text of a tool result, whose structure differs between APIs and agents. */
export function plainText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(plainText).join("\n");
  if (typeof value !== "object") return String(value);
  for (const key of ["text", "output", "error", "content"]) {
    const inner = Reflect.get(value, key);
    if (typeof inner === "string" || Array.isArray(inner)) return plainText(inner);
  }
  return JSON.stringify(value);
}
