import { eventsOf, type Told } from "./world.js";

export const client = { name: "pick", kind: "client" };
export const asks = { name: "send", callRef: "ref", permission: "ask" };
export const given = { to: "ann" };

/** The next turn's messages, as a platform writes them from what it was told. */
export function withAnswer(output: unknown, name = "send", input: unknown = given, id = "call-1") {
  return [
    { role: "user", content: "go" },
    { role: "assistant", content: [{ type: "tool_call", toolCallId: id, toolName: name, input }] },
    { role: "tool", content: [{ type: "tool_result", toolCallId: id, output }] },
  ];
}

export const questions = (told: Told) => eventsOf(told, "interaction_request");
