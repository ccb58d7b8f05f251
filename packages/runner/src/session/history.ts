import { createHash } from "node:crypto";
import type { Message, RunRequest, Warning } from "@ambit/core/contract";
import { historyOf, messageText } from "../parse/prompt.js";

/** Messages of the user that are remembered per session. */
const maxRemembered = 1_000;

/** A session's conversation that its agent has lost, and that the request doesn't contain either. */
export const forgotten: Warning = {
  path: "sessionId",
  message:
    "is a session whose agent couldn't load its conversation, and messages has none of it: the agent has begun a new one. Send the earlier messages to replay them",
};

/** Digests of the user's messages in a session, the oldest first. */
export type Said = readonly string[];

/**
 * Whether a request continues the conversation that its session's agent remembers. Callers may send all of it, its
 * end or nothing; if what they send of the user's earlier words differs, they edited it. Pure.
 *
 * @param isWhole whether they always send all of it.
 */
export function continues({ messages }: RunRequest, said: Said, isWhole = false): boolean {
  const given = saidBefore(messages);
  if (isWhole && Math.min(given.length, maxRemembered) !== said.length) return false;
  if (given.length === 0) return true;
  if (isWhole) return given.slice(-maxRemembered).every((words, at) => said[at] === words);
  return given.length <= said.length && given.every((words, at) => said.at(at - given.length) === words);
}

/** The user's messages up to the end of a request's turn. Pure. */
export function saidAfter(request: RunRequest, said: Said, isWhole = false): Said {
  const all = saidIn(request.messages);
  if (isWhole || !continues(request, said)) return all.slice(-maxRemembered);
  return [...said, ...all.slice(saidBefore(request.messages).length)].slice(-maxRemembered);
}

function saidBefore(messages: readonly Message[]): Said {
  return saidIn(historyOf(messages));
}

function saidIn(messages: readonly Message[]): Said {
  return messages.flatMap((message) => {
    const text = message.role === "user" ? messageText(message) : "";
    return text === "" ? [] : [createHash("sha256").update(text).digest("base64url")];
  });
}
