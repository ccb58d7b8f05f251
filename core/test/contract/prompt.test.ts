import { describe, expect, test } from "vitest";
import { historyOf, type Message, messageText, promptOf } from "../../src/contract/index.js";

const user = (content: Message["content"]): Message => ({ role: "user", content });
const assistant = (content: Message["content"]): Message => ({ role: "assistant", content });
const text = (content: string) => ({ type: "text", text: content });
const image = { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" };
const resource = { type: "resource", uri: "file:///a", text: "notes" };
const call = (id: string, input: unknown) => ({ type: "tool_call", toolCallId: id, toolName: "look", input });
const result = (id: string, output: unknown) => ({ type: "tool_result", toolCallId: id, output });

describe("a prompt is the last user message that says something", () => {
  test.each<[what: string, messages: Message[], text: string, blocks: object[], history: number]>([
    ["a string", [user("hi")], "hi", [text("hi")], 0],
    ["after a conversation", [user("a"), assistant("b"), user("c")], "c", [text("c")], 2],
    ["an assistant's last word doesn't hide it", [user("a"), assistant("b")], "a", [text("a")], 0],
    ["blocks", [user([text("a"), text("b")])], "ab", [text("a"), text("b")], 0],
    [
      "images and resources go along",
      [user([text("a"), image, resource])],
      "a",
      [text("a"), image, resource],
      0,
    ],
    ["an image alone says something", [user("old"), user([image])], "", [image], 1],
    ["an image beside blank text", [user([text(" "), image])], " ", [image], 0],
    ["a blank message is passed over", [user("a"), user("  ")], "a", [text("a")], 0],
    ["an empty list is passed over", [user("a"), user([])], "a", [text("a")], 0],
    ["a call without a result leaves it open", [user("a"), assistant([call("1", {})])], "a", [text("a")], 0],
    ["results before it are history", [user("a"), user([result("1", "x")]), user("b")], "b", [text("b")], 2],
  ])("%s", (_what, messages, expectedText, blocks, history) => {
    expect(promptOf(messages)).toEqual({ kind: "prompt", text: expectedText, blocks });
    expect(historyOf(messages)).toEqual(messages.slice(0, history));
  });
});

describe("results at the end continue the turn", () => {
  test.each<[what: string, messages: Message[], results: object[], blocks: object[], history: number]>([
    [
      "named by the call they answer",
      [user("a"), assistant([call("1", { x: 1 })]), user([result("1", { approved: true })])],
      [{ toolCallId: "1", toolName: "look", input: { x: 1 }, output: { approved: true }, isError: false }],
      [],
      2,
    ],
    [
      "several, in order, over several messages",
      [
        user("a"),
        assistant([call("1", 1), call("2", 2)]),
        { role: "tool", content: [result("2", "b")] },
        user([result("1", "a")]),
      ],
      [
        { toolCallId: "2", toolName: "look", input: 2, output: "b", isError: false },
        { toolCallId: "1", toolName: "look", input: 1, output: "a", isError: false },
      ],
      [],
      2,
    ],
    [
      "the call in the same message",
      [user("a"), assistant([call("1", {}), { ...result("1", "x"), isError: true }])],
      [{ toolCallId: "1", toolName: "look", input: {}, output: "x", isError: true }],
      [],
      1,
    ],
    [
      "a tool message of plain text",
      [user("a"), { role: "tool", content: "42" }],
      [{ output: "42", isError: false }],
      [],
      1,
    ],
    [
      "a result in words",
      [user([{ type: "tool_result", toolName: "look", text: "42" }])],
      [{ toolName: "look", output: "42", isError: false }],
      [],
      0,
    ],
    ["an unknown call", [user([result("9", 1)])], [{ toolCallId: "9", output: 1, isError: false }], [], 0],
    [
      "what the user adds goes along",
      [user([result("1", 1), text("and hurry"), image])],
      [{ toolCallId: "1", output: 1, isError: false }],
      [text("and hurry"), image],
      0,
    ],
  ])("%s", (_what, messages, results, blocks, history) => {
    expect(promptOf(messages)).toEqual({ kind: "continuation", results, blocks });
    expect(historyOf(messages)).toEqual(messages.slice(0, history));
  });
});

test.each<[what: string, messages: Message[]]>([
  ["no message", []],
  ["no user", [assistant("hello"), { role: "system", content: "be kind" }]],
  ["nothing said", [user(""), user([text("\n")])]],
])("no prompt: %s", (_what, messages) => {
  expect(promptOf(messages)).toEqual({ kind: "none" });
  expect(historyOf(messages)).toEqual(messages);
});

test.each<[content: Message["content"], text: string]>([
  ["as it is ", "as it is "],
  [[text("a"), image, resource, text("b"), { type: "text" }], "ab"],
  [[], ""],
])("messageText of %j", (content, expected) => {
  expect(messageText(user(content))).toBe(expected);
});
