import { createHash } from "node:crypto";
import type { ContentBlock, Message, RunRequest, Warning } from "@ambit/core/contract";
import { looksIssued } from "../call/values/unsettled.js";
import { historyOf, messageText, type Prompt, promptOf } from "../parse/prompt.js";

/** Length of the earlier conversation that is replayed to an agent that doesn't remember it. */
const maxTranscriptLength = 100_000;

/**
 * The prompt of this turn. An agent that has no memory of the conversation gets its transcript first.
 * Pure.
 */
export function composePrompt(request: RunRequest, remembers: boolean): readonly ContentBlock[] {
  const prompt = promptOf(request.messages);
  // Text of the user next to an answer is sent too.
  const said = prompt.kind === "none" ? [] : prompt.blocks;
  const blocks = prompt.kind === "prompt" ? said : [text(continuation), ...said];
  const { turnContext = "" } = request;
  const facts = turnContext.trim() === "" ? [] : [text(`${turnContext}\n\n`)];
  const transcript = remembers ? "" : transcriptOf(earlierConversation(request.messages, prompt.kind));
  return [...(transcript === "" ? [] : [text(`${transcript}\n\n`)]), ...facts, ...blocks];
}

/**
 * The conversation before this turn. Answers are next to their calls, often in the assistant's
 * own message. An agent that has to repeat those calls must see the calls, but not the answers.
 */
function earlierConversation(messages: readonly Message[], kind: Prompt["kind"]): readonly Message[] {
  const before = historyOf(messages);
  if (kind !== "continuation") return before;
  const turn = messages.slice(before.length).map(({ role, content }) => ({
    role,
    content:
      typeof content === "string"
        ? ""
        : content.filter(({ type, toolCallId = "" }) =>
            type === "tool_result" ? !looksIssued(toolCallId) : role === "assistant",
          ),
  }));
  return [...before, ...turn];
}

/** Whether the messages include a conversation from before this turn. Pure. */
export function hasHistory(request: RunRequest): boolean {
  return historyOf(request.messages).length > 0;
}

const continuation =
  "The user has answered what your last turn was waiting for. Make the same tool call again, with the same arguments, to receive the answer, and continue from there. If it waited for no call, continue where it stopped.";

function transcriptOf(messages: readonly Message[]): string {
  const lines = messages.flatMap((message) => {
    const said = messageText(message);
    return said === "" ? callsOf(message) : [`${message.role}: ${said}`, ...callsOf(message)];
  });
  if (lines.length === 0) return "";
  const whole = lines.join("\n");
  const transcript = whole.length > maxTranscriptLength ? `…${whole.slice(-maxTranscriptLength)}` : whole;
  return `The conversation so far:\n${transcript}`;
}

function callsOf({ role, content }: Message): string[] {
  if (typeof content === "string") return [];
  return content.flatMap((block) => {
    if (block.type === "tool_call")
      return [`${role} called ${block.toolName ?? "a tool"} with ${JSON.stringify(block.input ?? {})}`];
    if (block.type === "tool_result")
      return [`${block.toolName ?? "the tool"} answered ${JSON.stringify(block.output ?? null)}`];
    return [];
  });
}

function text(content: string): ContentBlock {
  return { type: "text", text: content };
}

/** Messages of the user that are remembered per session. */
const maxRemembered = 1_000;

/**
 * A session's conversation that its agent has lost, and that the request doesn't contain either. Pure.
 * @param why it was dropped. Default: the agent couldn't load it.
 */
export function forgotten(why = "its agent couldn't load it"): Warning {
  const message = `is a session whose conversation is lost (${why}), and messages has none of it: the agent has begun a new one. Send the earlier messages to replay them`;
  return { path: "sessionId", message };
}

/** Digests of the user's messages in a session, the oldest first. */
export type UserMessages = readonly string[];

/**
 * Whether a request continues the conversation that its session's agent remembers. Callers may send all of it, its
 * end or nothing; if what they send of the user's earlier words differs, they edited it. Pure.
 *
 * @param isWhole whether they always send all of it.
 */
export function continues({ messages }: RunRequest, userMessages: UserMessages, isWhole = false): boolean {
  const sent = earlierUserMessages(messages);
  if (isWhole && Math.min(sent.length, maxRemembered) !== userMessages.length) return false;
  if (sent.length === 0) return true;
  if (isWhole) return sent.slice(-maxRemembered).every((words, at) => userMessages[at] === words);
  return (
    sent.length <= userMessages.length &&
    sent.every((words, at) => userMessages.at(at - sent.length) === words)
  );
}

/** The user's messages up to the end of a request's turn. Pure. */
export function userMessagesAfter(
  request: RunRequest,
  userMessages: UserMessages,
  isWhole = false,
): UserMessages {
  const all = userMessagesIn(request.messages);
  if (isWhole || !continues(request, userMessages)) return all.slice(-maxRemembered);
  return [...userMessages, ...all.slice(earlierUserMessages(request.messages).length)].slice(-maxRemembered);
}

function earlierUserMessages(messages: readonly Message[]): UserMessages {
  return userMessagesIn(historyOf(messages));
}

function userMessagesIn(messages: readonly Message[]): UserMessages {
  return messages.flatMap((message) => {
    const text = message.role === "user" ? messageText(message) : "";
    return text === "" ? [] : [createHash("sha256").update(text).digest("base64url")];
  });
}
