import { RequestInvalid } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { readBody } from "../src/body.js";

const user = (...parts: readonly object[]) => ({ id: "u", role: "user", parts });
const assistant = (...parts: readonly object[]) => ({ id: "m1", role: "assistant", parts });
const text = { type: "text", text: "hi" };
const tool = (toolCallId: string, state: string, more: object = {}) => ({
  type: "tool-add",
  toolCallId,
  state,
  input: {},
  ...more,
});

const read = (...messages: readonly object[]) => readBody({ id: "c1", trigger: "submit-message", messages });

describe("the body of a chat's request", () => {
  it("is its user's last message, with files", () => {
    const file = { type: "file", url: "data:text/plain,a", mediaType: "text/plain", filename: "a.txt" };
    const body = read(user(text), assistant(text), user(text, file, { type: "data-page", data: 1 }));
    expect(body).toMatchObject({
      chatId: "c1",
      said: [
        { type: "text", text: "hi" },
        { type: "file", uri: "data:text/plain,a", mimeType: "text/plain", filename: "a.txt" },
      ],
      request: undefined,
    });
  });

  it("is the answers in the last message of the assistant, and nothing else of the past", () => {
    const body = read(
      assistant(tool("ask_0", "output-available", { output: "of an earlier message" })),
      assistant(
        tool("ask_1", "approval-responded", { approval: { id: "ask_1", approved: true } }),
        tool("c", "approval-responded", { type: "dynamic-tool", approval: { id: "ask_2", approved: false } }),
        tool("ask_3", "output-available", { output: { seat: 1 } }),
        tool("ask_4", "output-error", { errorText: "no" }),
        tool("ask_5", "approval-requested", { approval: { id: "ask_5" } }),
        // Outcomes of calls that Ambit executed, and parts that are none.
        tool("ask_6", "output-available", { output: 1, approval: { id: "ask_6", approved: true } }),
        tool("demo-1", "output-available", { output: 1 }),
        { type: "tool-add", state: 1 },
        text,
      ),
    );
    expect(body.said).toBeUndefined();
    expect(body.answered.messageId).toBe("m1");
    expect(body.answered.answers).toEqual([
      { questionId: "ask_1", answer: { approved: true } },
      { questionId: "ask_2", answer: { approved: false } },
      { questionId: "ask_3", answer: { output: { seat: 1 }, isError: false } },
      { questionId: "ask_4", answer: { output: "no", isError: true } },
    ]);
    expect(body.answered.parts).toContainEqual({ toolCallId: "c", approvalId: "ask_2" });
  });

  it("has at most 64 answers, the latest", () => {
    const parts = Array.from({ length: 100 }, (_, index) =>
      tool(`ask_${index}`, "output-available", { output: 1 }),
    );
    expect(read(assistant(...parts)).answered.answers.map(({ questionId }) => questionId)).toEqual(
      parts.slice(-64).map(({ toolCallId }) => toolCallId),
    );
  });

  it.each([
    [{}, "id"],
    [{ id: "c1", messages: [] }, "messages"],
    [{ id: "c".repeat(257), messages: [user(text)] }, "id"],
    [{ id: "c1", messages: [{ role: "tool" }] }, "messages[0].role"],
    [{ id: "c1", messages: [{ role: "system" }] }, "messages[0].role"],
    [{ id: "c1", messages: [{ role: "user", parts: [] }] }, "messages[0].parts"],
    [{ id: "c1", messages: [user({ type: "text", text: " " })] }, "messages[0].parts"],
    [{ id: "c1", messages: [user({ type: "text" })] }, "messages[0].parts[0]"],
    [{ id: "c1", messages: [assistant(), { role: "system" }] }, "messages[1].role"],
    [{ id: "c1", messages: [user(text)], ambit: [] }, "ambit"],
    ["text", ""],
  ])("is refused by its field: %j", (body, path) => {
    const attempt = () => readBody(body);
    expect(attempt).toThrow(RequestInvalid);
    expect(attempt).toThrow(path);
  });
});
