import { expect, it } from "vitest";
import { messagesOf, post } from "./clients.js";
import { publish } from "./publications.js";

const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "bare", arguments: {} } };

/** Gemini CLI parses the text as JSON, and rejects structured content that isn't an object. */
it.each([
  ["a number", "42", { result: 42 }],
  ["a list", " [1, 2]", { result: [1, 2] }],
  ["a JSON string", '"x"', { result: "x" }],
  ["null", "null", { result: null }],
  ["an object, which needs none", '{"a":1}', undefined],
  ["a text", "plain", undefined],
  ["text that only begins like JSON", "42 apples", undefined],
  ["a list of very many values", `[${"{},".repeat(60_000)}0]`, undefined],
  ["no text", "", undefined],
])("a result that is %s keeps its text", async (_what, output, structuredContent) => {
  const published = await publish(() => Promise.resolve({ output, isError: false }));
  const [{ result }] = await messagesOf(await post(published, call));
  expect(result.content).toEqual([{ type: "text", text: output }]);
  expect(result.structuredContent).toEqual(structuredContent);
});
