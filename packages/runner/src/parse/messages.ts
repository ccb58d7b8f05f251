/** The messages of a request: this turn's input, its inline content, and the conversation before it. */

import { createHash } from "node:crypto";
import {
  type ContentBlock,
  type Issue,
  type Message,
  maxIssues,
  type RunRequest,
  type Warning,
} from "@ambit/core/contract";

/** The input of this turn. */
type Prompt =
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

/** Characters before the content of a `data:` URI; a longer prefix isn't read. */
const maxTypeLength = 512;

/** The content of a block from a `data:` URI or base64, ready to be passed on. */
interface Inline {
  readonly mimeType: string;
  /** Base64. */
  readonly data: string;
}

/** Kinds of blocks that SDKs put files and images in. */
const carriers: ReadonlySet<string> = new Set(["image", "file", "resource", "attachment"]);

/** The messages with every inline file in one form: an `image` or a `resource` with `data` and `mimeType`. Pure. */
export function withInlineContent(messages: readonly Message[]): Message[] {
  return messages.map((message) => {
    const { content } = message;
    if (typeof content === "string" || !content.some(({ type }) => carriers.has(type))) return message;
    return { ...message, content: content.map(withContent) };
  });
}

function withContent(block: ContentBlock): ContentBlock {
  if (!carriers.has(block.type)) return block;
  const inline = inlineOf(block);
  if (inline === undefined) return block;
  const { uri, attachmentId: _content, ...rest } = block;
  return {
    ...rest,
    ...(uri === undefined || isDataUri(uri) ? {} : { uri }),
    type: inline.mimeType.startsWith("image/") ? "image" : "resource",
    ...inline,
  };
}

function inlineOf({ type, data, uri, mimeType }: ContentBlock): Inline | undefined {
  for (const value of [data, uri]) {
    if (value === undefined || !isDataUri(value)) continue;
    return readDataUri(value, mimeType ?? unsaid(type));
  }
  if (data === undefined || data === "") return undefined;
  return { data, mimeType: mimeType ?? unsaid(type) };
}

/** For an image without a type: the most common one. */
function unsaid(type: string): string {
  return type === "image" ? "image/png" : "application/octet-stream";
}

function isDataUri(value: string): boolean {
  return /^data:/i.test(value);
}

/** RFC 2397. Undefined for any other URI, which stays a link that the agent may refuse. */
function readDataUri(uri: string, unnamed: string): Inline | undefined {
  const comma = uri.slice(0, maxTypeLength).indexOf(",");
  if (comma === -1) return undefined;
  const [type = "", ...parameters] = uri.slice("data:".length, comma).split(";");
  const mimeType = type === "" ? unnamed : type.toLowerCase();
  const content = uri.slice(comma + 1);
  try {
    const text = content.includes("%") ? decodeURIComponent(content) : content;
    const data = parameters.some((parameter) => parameter.trim().toLowerCase() === "base64")
      ? onOneLine(text)
      : Buffer.from(text).toString("base64");
    return data === "" ? undefined : { mimeType, data };
  } catch {
    // Broken percent-encoding.
    return undefined;
  }
}

/** Base64 without line breaks. Decodes and encodes it: millions of replacements would block the event loop. */
function onOneLine(base64: string): string {
  return /\s/.test(base64) ? Buffer.from(base64, "base64").toString("base64") : base64;
}

/** Blocks that carry a file or an image. */
const media: ReadonlySet<string> = new Set(["image", "audio", "resource", "file", "attachment"]);
/** Blocks that say something or record a call. */
const texts: ReadonlySet<string> = new Set(["text", "tool_call", "tool_result"]);

/** Base64 of RFC 4648, with or without padding, without line breaks: what ACP passes to an agent. */
const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/**
 * What no agent could take of this turn's messages, whose inline content has one form already. Earlier messages may hold
 * anything: a conversation with an attachment in its past continues. Pure.
 */
export function unusableContent(messages: readonly Message[]): Issue[] {
  const issues: Issue[] = [];
  for (let index = historyOf(messages).length; index < messages.length; index += 1) {
    const content = messages[index]?.content ?? "";
    if (typeof content === "string") continue;
    for (const [at, block] of content.entries()) {
      issues.push(...issueOf(block, `messages[${index}].content[${at}]`));
      if (issues.length > maxIssues) return issues;
    }
  }
  return issues;
}

function issueOf(block: ContentBlock, path: string): Issue[] {
  const { type, attachmentId, data, uri, text } = block;
  if (type === "attachment" || attachmentId !== undefined) {
    const message = "is in the platform's own store: send its content as an image or resource block";
    return [{ path: `${path}.attachmentId`, message }];
  }
  if (texts.has(type)) return [];
  if (!media.has(type)) {
    const message = `is '${type}', which agents don't take: use text, image, audio or resource`;
    return [{ path: `${path}.type`, message }];
  }
  if (
    data === undefined &&
    uri === undefined &&
    (type === "image" || type === "audio" || text === undefined)
  ) {
    const message = `is missing: the content of this ${type}, as base64 or a data: URI`;
    return [{ path: `${path}.data`, message }];
  }
  if (data !== undefined && !isBase64(data))
    return [{ path: `${path}.data`, message: "is neither base64 nor a data: URI" }];
  if (uri?.slice(0, "data:".length).toLowerCase() === "data:")
    return [{ path: `${path}.uri`, message: "is no readable data: URI (RFC 2397)" }];
  return [];
}

function isBase64(data: string): boolean {
  return data !== "" && data.length % 4 !== 1 && base64.test(data);
}

/** The beginning of every id that the runner issues for a question. */
export const issuedPrefix = "ask_";

/** Whether an id looks like one of ours. An agent's own id must not. */
export function looksIssued(id: string): boolean {
  return id.startsWith(issuedPrefix);
}

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
