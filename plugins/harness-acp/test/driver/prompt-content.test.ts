import type { ContentBlock } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { promptContent } from "../../src/driver/turn.js";

describe("the prompt's content", () => {
  const all = { image: true, audio: true, embeddedContext: true };
  it.each<{ block: ContentBlock; acp: object }>([
    { block: { type: "text", text: "t" }, acp: { type: "text", text: "t" } },
    {
      block: { type: "image", data: "AA", mimeType: "image/png" },
      acp: { type: "image", data: "AA", mimeType: "image/png" },
    },
    {
      block: { type: "resource", uri: "file:///f", text: "t", mimeType: "text/plain" },
      acp: { type: "resource", resource: { uri: "file:///f", mimeType: "text/plain", text: "t" } },
    },
    {
      block: { type: "attachment", attachmentId: "7", data: "AA", mimeType: "application/pdf" },
      acp: { type: "resource", resource: { uri: "attachment:7", mimeType: "application/pdf", blob: "AA" } },
    },
    {
      block: { type: "resource", uri: "https://example.com/f", filename: "f" },
      acp: { type: "resource_link", uri: "https://example.com/f", name: "f" },
    },
  ])("$block.type", ({ block, acp }) => {
    expect(promptContent([block], all, "It")).toEqual([acp]);
  });

  it.each<{ block: ContentBlock; says: string }>([
    { block: { type: "image", data: "AA", mimeType: "image/png" }, says: "doesn't support images" },
    { block: { type: "audio", data: "AA", mimeType: "audio/wav" }, says: "doesn't support sound" },
    { block: { type: "resource", uri: "file:///f", text: "t" }, says: "doesn't support files" },
    { block: { type: "hologram" }, says: "hologram" },
  ])("$block.type is refused instead of left out if the agent can't take it", ({ block, says }) => {
    const none = { image: false, audio: false, embeddedContext: false };
    expect(() => promptContent([block], none, "It")).toThrow(says);
  });
});
