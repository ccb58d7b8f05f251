import { createHash } from "node:crypto";
import type { Message, RunRequest, Warning } from "@ambit/core/contract";
import { historyOf, messageText } from "../parse/prompt.js";

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
  const given = earlierUserMessages(messages);
  if (isWhole && Math.min(given.length, maxRemembered) !== userMessages.length) return false;
  if (given.length === 0) return true;
  if (isWhole) return given.slice(-maxRemembered).every((words, at) => userMessages[at] === words);
  return (
    given.length <= userMessages.length &&
    given.every((words, at) => userMessages.at(at - given.length) === words)
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
