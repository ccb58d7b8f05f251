import { describe, expect, it } from "vitest";
import { configSchema } from "../src/config.js";
import { MessageGuard } from "../src/message-guard.js";

const guard = () => new MessageGuard(configSchema.parse({}));
const answer = (result: object) => JSON.stringify({ jsonrpc: "2.0", id: 7, result });
const inputSchema = { type: "object", properties: { city: { type: "string" } } };

describe("what the SDK gets of an MCP message", () => {
  it.each([
    ["a text", { content: [{ type: "text", text: "a" }] }, "a"],
    [
      "two texts",
      {
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      "a\nb",
    ],
    ["an image", { content: [{ type: "image", data: "x", mimeType: "image/png" }] }, "[image]"],
    ["a link", { content: [{ type: "resource_link", uri: "file:///a", name: "a" }] }, "file:///a"],
    ["a resource", { content: [{ type: "resource", resource: { uri: "a", text: "its text" } }] }, "its text"],
    [
      "one without text",
      { content: [{ type: "resource", resource: { uri: "a", blob: "eA==" } }] },
      "[resource]",
    ],
    ["structured content alone", { content: [], structuredContent: { a: [1] } }, '{"a":[1]}'],
    ["both", { content: [{ type: "text", text: "a" }], structuredContent: { b: 1 } }, "a"],
    ["nothing", { content: [] }, ""],
  ])("of %s is a key, whose text is kept", async (_what, result, output) => {
    const one = guard();
    const passed = JSON.parse(one.admit(answer({ ...result, isError: true })) ?? "");
    const [{ text: key }] = passed.result.content;
    expect(passed).toEqual({
      jsonrpc: "2.0",
      id: 7,
      result: { content: [{ type: "text", text: key }], isError: true },
    });
    expect(one.outputOf(key)).toBe(output);
    expect(one.outputOf(key)).toBeUndefined();
  });

  it("is small, however large the result", () => {
    const structuredContent = Object.fromEntries(
      Array.from({ length: 45_000 }, (_, at) => [`key ${at}`, at]),
    );
    const one = guard();
    const passed = one.admit(answer({ content: [], structuredContent }));
    expect(passed?.length).toBeLessThan(200);
    expect(one.outputOf("1")).toBe(JSON.stringify(structuredContent));
  });

  it("has no tools but those that ask for headers", async () => {
    const one = guard();
    const header = { type: "object", properties: { city: { type: "string", "x-mcp-header": "City" } } };
    const tools = [
      { name: "a", description: "d", inputSchema, annotations: { readOnlyHint: true } },
      { name: "b", inputSchema: header },
    ];
    const passed = JSON.parse(one.admit(answer({ tools, nextCursor: "2" })) ?? "");
    expect(passed.result).toEqual({ tools: [tools[1]], nextCursor: "2" });
    expect(one.listed()).toEqual([
      { name: "a", description: "d", inputSchema, readOnly: true },
      { name: "b", inputSchema: header },
    ]);
    one.admit(answer({ tools }));
    expect(one.listed(), "listed again").toEqual([]);
  });

  it.each([
    ["a result without a list", { content: 1, structuredContent: 1 }, "content isn't a list"],
    ["content without a type", { content: [{}] }, "content that has no type"],
    ["a text without text", { content: [{ type: "text" }] }, "of type 'text' that isn't complete"],
    ["a tool without a name", { tools: [{ inputSchema }] }, "lists a tool without a name"],
    ["a tool without a schema", { tools: [{ name: "a" }] }, "the tool 'a' without an inputSchema"],
    ["a description of no text", { tools: [{ name: "a", inputSchema, description: 1 }] }, "isn't a text"],
    ["other results of many values", { serverInfo: Array(2_001).fill(0) }, "more than 2,000 values"],
    ["other results of long texts", { instructions: "x".repeat(1_100_000) }, "1,048,576 characters"],
    [
      "many values in tools that ask for headers",
      {
        tools: [
          { name: "a", inputSchema: { ...inputSchema, "x-mcp-header": 1, enum: Array(2_000).fill(0) } },
        ],
      },
      "more than 2,000 values",
    ],
  ])("isn't %s", async (_what, result, why) => {
    const one = guard();
    expect(() => one.admit(answer(result))).toThrow(why);
    expect(one.refusal?.message).toContain(why);
  });

  it("keeps the outputs that nothing waits for up to a limit", async () => {
    const one = new MessageGuard(configSchema.parse({ maxMessageBytes: 1_000 }));
    for (let at = 0; at < 100; at += 1)
      one.admit(answer({ content: [{ type: "text", text: "x".repeat(500) }] }));
    const kept = Array.from({ length: 100 }, (_, at) => one.outputOf(String(at + 1)));
    expect(kept.filter((text) => text !== undefined)).toHaveLength(3);
    expect(kept.at(-1)).toBeDefined();
  });
});
