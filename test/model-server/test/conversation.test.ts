import { describe, expect, it } from "vitest";
import { type ConversationEntry, plainText, readConversation } from "../src/conversation.js";

const user = (userText: string): ConversationEntry => ({ userText });
const result = (text: string): ConversationEntry => ({ toolResult: { callId: text, text } });

describe("readConversation", () => {
  it.each<[string, readonly ConversationEntry[], string, readonly string[]]>([
    ["nothing", [], "", []],
    [
      "results since the text",
      [user("a"), result("1"), user("b"), result("2"), result("3")],
      "b",
      ["2", "3"],
    ],
    ["a text after results: a new instruction", [user("a"), result("1"), user("b")], "b", []],
    ["merged messages: the last part", [user("[[hang]]"), user("[Request interrupted]"), user("c")], "c", []],
    ["context in the text", [user("a <system-reminder>b</system-reminder>")], "a", []],
    [
      "context behind the results",
      [user("a"), result("1"), user("<system-reminder>b</system-reminder>")],
      "a",
      ["1"],
    ],
    ["context behind the text", [user("a"), user('<context ref="x">\nb\n</context>')], "a", []],
    ["an element within the text", [user("say <b>a</b> now")], "say <b>a</b> now", []],
  ])("reads %s", (_name, entries, lastUserText, results) => {
    const read = readConversation(entries);
    expect(read.lastUserText).toBe(lastUserText);
    expect(read.toolResults.map(({ text }) => text)).toEqual(results);
  });
});

describe("plainText", () => {
  it.each([
    ["text", "a", "a"],
    ["nothing", undefined, ""],
    [
      "content blocks",
      [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
      "a\nb",
    ],
    ["Gemini's output", { output: "a" }, "a"],
    ["Gemini's error", { error: "a" }, "a"],
    ["nested content", { content: [{ text: "a" }] }, "a"],
    ["anything else", { a: 1 }, '{"a":1}'],
    ["a number", 5, "5"],
  ])("reads %s", (_name, value, text) => {
    expect(plainText(value)).toBe(text);
  });
});
