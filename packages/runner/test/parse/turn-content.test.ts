import { describe, expect, it } from "vitest";
import { parseRunRequest } from "../../src/parse/parse.js";

function issuesOf(block: object, earlier: readonly object[] = []) {
  const messages = [...earlier, { role: "user", content: [{ type: "text", text: "look" }, block] }];
  const parsed = parseRunRequest({ messages });
  return parsed.ok ? [] : parsed.issues;
}

describe("the content of this turn", () => {
  it.each([
    ["an unknown type", { type: "txt", text: "hello" }, "type", /'txt', which agents don't take/],
    ["an image without content", { type: "image", mimeType: "image/png" }, "data", /is missing/],
    ["a sound without content", { type: "audio", text: "la" }, "data", /is missing/],
    ["a file without content", { type: "file", filename: "a.txt" }, "data", /is missing/],
    ["an empty image", { type: "image", data: "" }, "data", /neither base64/],
    ["text as base64", { type: "image", data: "this is no image" }, "data", /neither base64/],
    ["base64 of an impossible length", { type: "image", data: "aGVsb" }, "data", /neither base64/],
    ["a data: URI without a comma", { type: "resource", uri: "data:text/plain" }, "uri", /data: URI/],
    ["a data: URI with broken encoding", { type: "file", uri: "data:,%E0%A4%A" }, "uri", /data: URI/],
    ["a data: URI without end", { type: "image", uri: `data:${";".repeat(600)},` }, "uri", /data: URI/],
  ])("is refused with %s", (_, block, field, message) => {
    expect(issuesOf(block)).toEqual([
      { path: `messages[0].content[1].${field}`, message: expect.stringMatching(message) },
    ]);
  });

  it.each([
    ["an image", { type: "image", data: "aGVsbG8=" }],
    ["an image without padding", { type: "image", data: "aGVsbG8" }],
    ["an image with line breaks", { type: "image", data: "data:image/png;base64,aGVs\nbG8=" }],
    ["a resource with text", { type: "resource", uri: "file:///a", text: "hello" }],
    ["a link", { type: "resource", uri: "https://example.com/a" }],
    ["a file as a data: URI", { type: "file", uri: "data:text/plain,hello" }],
  ])("may be %s", (_, block) => {
    expect(issuesOf(block)).toEqual([]);
  });

  it("doesn't matter in earlier turns", () => {
    const earlier = [
      { role: "user", content: [{ type: "hologram" }, { type: "text", text: "see" }] },
      { role: "assistant", content: "I see." },
    ];
    expect(issuesOf({ type: "text", text: "and now?" }, earlier)).toEqual([]);
  });
});
