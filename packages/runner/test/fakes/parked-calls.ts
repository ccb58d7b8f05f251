import { type ConversationName, QuestionIds, type QuestionSubject } from "../../src/call/request-answers.js";
import { eventsOf, type Told, testKey } from "./world.js";

export const client = { name: "pick", kind: "client" };
export const asks = { name: "send", callRef: "ref", permission: "ask" };
export const given = { to: "ann" };

/** The id under which an earlier run asked about a call. */
export function issuedId(
  call: Partial<QuestionSubject> = {},
  conversation: Partial<ConversationName> = {},
  key = testKey,
  turn = "0".repeat(32),
): string {
  const ids = new QuestionIds(key, { project: undefined, session: undefined, ...conversation }, turn);
  return ids.issue({ kind: "user_approval", origin: "request", name: "send", input: given, ...call });
}

/** The next turn's messages, as a platform builds them from the events. */
export function withAnswer(output: unknown, name = "send", input: unknown = given, id?: string) {
  const toolCallId = id ?? issuedId({ kind: name === "pick" ? "client_tool" : "user_approval", name, input });
  return [
    { role: "user", content: "go" },
    { role: "assistant", content: [{ type: "tool_call", toolCallId, toolName: name, input }] },
    { role: "tool", content: [{ type: "tool_result", toolCallId, output }] },
  ];
}

export const questions = (recorded: Told) => eventsOf(recorded, "interaction_request");
