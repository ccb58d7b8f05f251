import { type ContentBlock, type Message, messageText } from "./message.js";

/** The answer to a call of an earlier turn, with what was called where the messages tell. */
export interface AnsweredCall {
  readonly toolCallId?: string;
  readonly toolName?: string;
  /** The call's arguments. */
  readonly input?: unknown;
  /** What the tool gave, or `{approved: boolean}` for a call that asked. */
  readonly output?: unknown;
  readonly isError: boolean;
}

/** What this turn is about. */
export type Prompt =
  | {
      readonly kind: "prompt";
      /** Texts, images and resources of the message, in order. */
      readonly blocks: readonly ContentBlock[];
      /** Its texts, joined; empty when it holds images alone. */
      readonly text: string;
    }
  | {
      readonly kind: "continuation";
      /** In the order in which they were given. */
      readonly results: readonly AnsweredCall[];
      /** What the user said beside the results. */
      readonly blocks: readonly ContentBlock[];
    }
  | { readonly kind: "none" };

/**
 * The last user message that says something; or, when the conversation ends with tool results, those: then the
 * turn goes on where it stopped.
 */
export function promptOf(messages: readonly Message[]): Prompt {
  const start = startOfTurn(messages);
  const message = messages[start];
  if (message === undefined) return { kind: "none" };
  if (!bearsResults(message)) {
    return { kind: "prompt", blocks: saidIn(message), text: messageText(message) };
  }
  const tail = messages.slice(start);
  return {
    kind: "continuation",
    results: tail.flatMap((answer) => resultsIn(answer, messages)),
    blocks: tail.filter(({ role }) => role === "user").flatMap(saidIn),
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
  const spoken = messages.findLastIndex(
    (message) => message.role === "user" && !bearsResults(message) && saidIn(message).length > 0,
  );
  return spoken === -1 ? messages.length : spoken;
}

function bearsResults({ role, content }: Message): boolean {
  return (
    role === "tool" || (typeof content !== "string" && content.some(({ type }) => type === "tool_result"))
  );
}

/** What goes to the agent as it is: not the record of calls, not texts without a word. */
function saidIn({ content }: Message): ContentBlock[] {
  const blocks: readonly ContentBlock[] =
    typeof content === "string" ? [{ type: "text", text: content }] : content;
  return blocks.filter(({ type, text = "" }) =>
    type === "text" ? text.trim() !== "" : type !== "tool_call" && type !== "tool_result",
  );
}

function resultsIn(message: Message, messages: readonly Message[]): AnsweredCall[] {
  const { role, content } = message;
  const blocks = typeof content === "string" ? [] : content.filter(({ type }) => type === "tool_result");
  if (blocks.length === 0) return role === "tool" ? [{ output: messageText(message), isError: false }] : [];
  return blocks.map((block) => ({ ...callOf(block, messages), isError: block.isError ?? false }));
}

/** A result often names its call by id alone; the call itself stands earlier. */
function callOf(result: ContentBlock, messages: readonly Message[]): Omit<AnsweredCall, "isError"> {
  const { toolCallId, output = result.text } = result;
  const call = toolCallId === undefined ? undefined : findCall(toolCallId, messages);
  const toolName = result.toolName ?? call?.toolName;
  const input = result.input ?? call?.input;
  return {
    ...(toolCallId === undefined ? {} : { toolCallId }),
    ...(toolName === undefined ? {} : { toolName }),
    ...(input === undefined ? {} : { input }),
    ...(output === undefined ? {} : { output }),
  };
}

function findCall(id: string, messages: readonly Message[]): ContentBlock | undefined {
  for (const { content } of messages.toReversed()) {
    if (typeof content === "string") continue;
    const call = content.findLast(({ type, toolCallId }) => type === "tool_call" && toolCallId === id);
    if (call !== undefined) return call;
  }
  return undefined;
}
