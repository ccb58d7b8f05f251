import type { Schema } from "@ambit/client";
import { describe, expect, it } from "vitest";
import { answerOf, formOf, questionOf } from "../src/questions.js";

type Interaction = Schema<"InteractionsResponse">["interactions"][number];

const interaction = (kind: Interaction["kind"], payload: Interaction["payload"]): Interaction => ({
  id: "ask_1",
  runId: "r1",
  kind,
  payload,
  state: "open",
  createdAt: "2026-11-29T00:00:00.000Z",
});
const branch = { type: "object", properties: { branch: { type: "string" } }, required: ["branch"] };

describe("a question of a run", () => {
  it.each<[string, Interaction["kind"], Interaction["payload"], string, object | undefined]>([
    [
      "a call is a yes or no",
      "user_approval",
      { toolName: "wipe", server: "disk", input: { path: "/tmp" } },
      'The agent wants to call wipe of disk with {"path":"/tmp"}.',
      { type: "object", required: ["approved"] },
    ],
    [
      "a call whose earlier outcome is unknown says so",
      "user_approval",
      { toolName: "pay", earlierOutcome: "unknown" },
      "The agent wants to call pay. The same call may have run before.",
      { type: "object" },
    ],
    ["a form is passed on", "user_input", { input: { message: "Which?", form: branch } }, "Which?", branch],
    [
      "a form that MCP has no words for is named in the result",
      "user_input",
      { input: { message: "Which?", form: { properties: { a: { type: "object" } } } } },
      "Which?",
      undefined,
    ],
    [
      "a page to visit is named in the result",
      "user_input",
      { input: { message: "Sign in", url: "https://a.example/" } },
      "Sign in (https://a.example/)",
      undefined,
    ],
    [
      "a client tool is named in the result",
      "client_tool",
      { toolName: "seat", input: {} },
      "The agent needs the output of seat with {}.",
      undefined,
    ],
  ])("%s", (_what, kind, payload, message, schema) => {
    const question = questionOf(interaction(kind, payload));
    expect(question.message).toBe(message);
    const expected =
      schema && expect.objectContaining({ message, requestedSchema: expect.objectContaining(schema) });
    expect(formOf(question)).toEqual(expected);
  });

  it("is short, whatever the call's arguments", () => {
    const { message } = questionOf(
      interaction("user_approval", { toolName: "write", input: { text: "a".repeat(100_000) } }),
    );
    expect(message.length).toBeLessThan(2_200);
  });

  it.each([
    ["user_approval", { action: "accept", content: { approved: true } }, { approved: true }],
    ["user_approval", { action: "accept", content: { approved: "true" } }, { approved: false }],
    ["user_approval", { action: "accept" }, { approved: false }],
    ["user_approval", { action: "decline", content: { approved: true } }, { approved: false }],
    ["user_approval", { action: "cancel" }, { approved: false }],
    ["user_input", { action: "accept", content: { branch: "main" } }, { output: { branch: "main" } }],
    ["user_input", { action: "decline" }, { output: "declined", isError: true }],
  ] as const)("of the kind %s takes %j as %j", (kind, given, answer) => {
    expect(answerOf(questionOf(interaction(kind, {})), given)).toEqual(answer);
  });
});
