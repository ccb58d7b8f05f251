import type { KeyObject } from "node:crypto";
import { projectOf, type RunRequest } from "@ambit/core/contract";
import { keptAnswers } from "./answers.js";
import { CallIds } from "./call-ids.js";
import type { AnswerKeeper } from "./used-answers.js";

/**
 * Whether an answer to the session's latest question waits for its next turn.
 * @param keeper undefined: answers aren't kept here. @throws StoreFailed
 */
export async function hasStoredAnswer(
  request: RunRequest,
  keeper: AnswerKeeper | undefined,
  key: () => Promise<KeyObject>,
): Promise<boolean> {
  const { sessionId: session } = request;
  if (session === undefined || keeper === undefined) return false;
  const conversation = { project: projectOf(request), session };
  const given = await keeper.given(conversation);
  if (given.answers.length === 0) return false;
  // Nothing is issued: these only read the ids of earlier turns.
  const ids = new CallIds(await key(), conversation, "");
  return keptAnswers(given, ids).length > 0;
}
