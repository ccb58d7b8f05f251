import type { Message } from "@ambit/core/contract";
import { describe, expect, test } from "vitest";
import { historyOf, messageText, promptOf } from "../../src/parse/messages.js";

const user = (content: Message["content"]): Message => ({ role: "user", content });
const assistant = (content: Message["content"]): Message => ({ role: "assistant", content });
const text = (content: string) => ({ type: "text", text: content });
const image = { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" };
const resource = { type: "resource", uri: "file:///a", text: "notes" };
const call = (id: string, input: unknown) => ({ type: "tool_call", toolCallId: id, toolName: "look", input });
const result = (id: string, output: unknown) => ({ type: "tool_result", toolCallId: id, output });

describe("a prompt is the last user message with content", () => {
  test.each<[what: string, messages: Message[], blocks: object[], history: number]>([
    ["a string", [user("hi")], [text("hi")], 0],
    ["after a conversation", [user("a"), assistant("b"), user("c")], [text("c")], 2],
    ["an assistant's last word doesn't hide it", [user("a"), assistant("b")], [text("a")], 0],
    ["blocks", [user([text("a"), text("b")])], [text("a"), text("b")], 0],
    ["images and resources go along", [user([text("a"), image, resource])], [text("a"), image, resource], 0],
    ["an image alone says something", [user("old"), user([image])], [image], 1],
    ["an image beside blank text", [user([text(" "), image])], [image], 0],
    ["a blank message is passed over", [user("a"), user("  ")], [text("a")], 0],
    ["an empty list is passed over", [user("a"), user([])], [text("a")], 0],
    ["a call without a result leaves it open", [user("a"), assistant([call("1", {})])], [text("a")], 0],
    ["results before it are history", [user("a"), user([result("1", "x")]), user("b")], [text("b")], 2],
  ])("%s", (_what, messages, blocks, history) => {
    expect(promptOf(messages)).toEqual({ kind: "prompt", blocks });
    expect(historyOf(messages)).toEqual(messages.slice(0, history));
  });
});

describe("results at the end continue the turn", () => {
  test.each<[what: string, messages: Message[], blocks: object[], history: number]>([
    [
      "named by the call they answer",
      [user("a"), assistant([call("1", { x: 1 })]), user([result("1", { approved: true })])],
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
      [],
      2,
    ],
    [
      "the call in the same message",
      [user("a"), assistant([call("1", {}), { ...result("1", "x"), isError: true }])],
      [],
      1,
    ],
    ["a tool message of plain text", [user("a"), { role: "tool", content: "42" }], [], 1],
    ["a result in words", [user([{ type: "tool_result", toolName: "look", text: "42" }])], [], 0],
    ["an unknown call", [user([result("9", 1)])], [], 0],
    [
      "what the user adds goes along",
      [user([result("1", 1), text("and hurry"), image])],
      [text("and hurry"), image],
      0,
    ],
  ])("%s", (_what, messages, blocks, history) => {
    expect(promptOf(messages)).toEqual({ kind: "continuation", blocks });
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
