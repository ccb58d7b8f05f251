import type { ContentBlock, Message } from "@ambit/core/contract";

/** The input of this turn. */
export type Prompt =
  | {
      readonly kind: "prompt";
      /** Texts, images and resources of the message, in order. */
      readonly blocks: readonly ContentBlock[];
    }
  | {
      readonly kind: "continuation";
      /** What the user wrote in addition to the results. */
      readonly blocks: readonly ContentBlock[];
    }
  | { readonly kind: "none" };

/**
 * The last user message that says something; or, when the conversation ends with tool results, those: then the
 * turn continues where it stopped.
 */
export function promptOf(messages: readonly Message[]): Prompt {
  const start = startOfTurn(messages);
  const message = messages[start];
  if (message === undefined) return { kind: "none" };
  if (!bearsResults(message)) {
    return { kind: "prompt", blocks: userContentOf(message) };
  }
  const tail = messages.slice(start);
  return {
    kind: "continuation",
    blocks: tail.filter(({ role }) => role === "user").flatMap(userContentOf),
  };
}

/** The conversation before this turn's prompt or results; all of it when there is neither. */
export function historyOf(messages: readonly Message[]): readonly Message[] {
  return messages.slice(0, startOfTurn(messages));
}

/** The index of the first message of this turn; past the end when there is none. */
function startOfTurn(messages: readonly Message[]): number {
  const lastOther = messages.findLastIndex((message) => !bearsResults(message));
  if (lastOther < messages.length - 1) return lastOther + 1;
  const lastText = messages.findLastIndex(
    (message) => message.role === "user" && !bearsResults(message) && userContentOf(message).length > 0,
  );
  return lastText === -1 ? messages.length : lastText;
}

function bearsResults({ role, content }: Message): boolean {
  return (
    role === "tool" || (typeof content !== "string" && content.some(({ type }) => type === "tool_result"))
  );
}

/** What goes to the agent unchanged: no records of calls, no blank texts. */
function userContentOf({ content }: Message): ContentBlock[] {
  const blocks: readonly ContentBlock[] =
    typeof content === "string" ? [{ type: "text", text: content }] : content;
  return blocks.filter(({ type, text = "" }) =>
    type === "text" ? text.trim() !== "" : type !== "tool_call" && type !== "tool_result",
  );
}

/** A string unchanged; of blocks, the joined texts. */
export function messageText(message: Message): string {
  if (typeof message.content === "string") return message.content;
  return message.content.flatMap((block) => (block.type === "text" ? [block.text ?? ""] : [])).join("");
}
