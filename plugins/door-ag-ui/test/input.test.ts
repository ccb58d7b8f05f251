import { RequestInvalid } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { readInput } from "../src/input.js";

const user = (content: unknown) => ({ id: "u", role: "user", content });
const base = { threadId: "t", runId: "r", messages: [user("hi")], tools: [], context: [] };

describe("the input of a run", () => {
  it.each<[string, object, object]>([
    ["a text", {}, { said: [{ type: "text", text: "hi" }], request: undefined }],
    [
      "the context before it, and a file",
      {
        context: [{ description: "Page", value: "cart" }],
        messages: [
          user([
            { type: "text", text: "see" },
            { type: "image", source: { type: "data", value: "aGk=", mimeType: "image/png" } },
          ]),
        ],
      },
      {
        said: [
          { type: "text", text: "Page: cart" },
          { type: "text", text: "see" },
          { type: "file", data: "aGk=", mimeType: "image/png" },
        ],
      },
    ],
    [
      "results of the application's own calls after the last answer, and none of Ambit's",
      {
        messages: [
          { id: "x", role: "tool", toolCallId: "ask_old", content: "1" },
          { id: "a", role: "assistant" },
          { id: "b", role: "tool", toolCallId: "ask_1", content: '{"seat":1}' },
          { id: "c", role: "tool", toolCallId: "ask_2", content: "no", error: "closed" },
          { id: "d", role: "tool", toolCallId: "call-1", content: "of Ambit" },
        ],
      },
      {
        said: undefined,
        toolResults: new Map([
          ["ask_1", { output: { seat: 1 }, isError: false }],
          ["ask_2", { output: "closed", isError: true }],
        ]),
      },
    ],
    [
      "answers, tools, the state and a platform's fields",
      {
        messages: [],
        resume: [
          { interruptId: "ask_1", status: "resolved", payload: { approved: true } },
          { interruptId: "ask_2", status: "cancelled" },
        ],
        tools: [{ name: "pick", description: "Picks.", parameters: { type: "object" } }],
        state: { cart: 1 },
        forwardedProps: { ambit: { harness: "demo" } },
      },
      {
        said: undefined,
        resumed: [
          { interruptId: "ask_1", isCancelled: false, payload: { approved: true } },
          { interruptId: "ask_2", isCancelled: true, payload: undefined },
        ],
        tools: [{ name: "pick", kind: "client", description: "Picks.", inputSchema: { type: "object" } }],
        state: { cart: 1 },
        request: { harness: "demo" },
      },
    ],
  ])("is %s", (_what, change, expected) => {
    expect(readInput({ ...base, ...change })).toMatchObject(expected);
  });

  it.each<[string, unknown, string]>([
    ["no thread", { ...base, threadId: "" }, "threadId"],
    ["no object", [], ""],
    ["a message without content", { ...base, messages: [{ id: "u", role: "user" }] }, "messages[0].content"],
    ["an answer without a status", { ...base, resume: [{ interruptId: "ask_1" }] }, "resume[0].status"],
  ])("is refused with %s", (_what, body, path) => {
    const issues = () => {
      try {
        readInput(body);
      } catch (error) {
        return error instanceof RequestInvalid ? error.issues.map((issue) => issue.path) : error;
      }
      return [];
    };
    expect(issues()).toContain(path);
  });
});
