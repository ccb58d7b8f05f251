import { expect, it } from "vitest";
import { requestByHand, withoutCredentials } from "../../../src/cli/by-hand/request.js";

const asked = { prompt: "hi", earlier: [], files: [], skills: [], waitMs: 0 };

it("is saved without credentials, also those in URLs", () => {
  const request = requestByHand({
    ...asked,
    options: {
      agent: "claude",
      mcp: [
        "tools=https://tools.example/mcp?key=planted-query#planted-part",
        "https://planted-user:planted-password@other.example/mcp",
        "https://planted@third example",
        "https://plain.example/mcp",
      ],
    },
    environment: {
      ANTHROPIC_API_KEY: "planted-key",
      ANTHROPIC_BASE_URL: "https://planted-user@gateway.example/v1?token=planted-token",
    },
  });
  expect(JSON.stringify(request)).toContain("planted-query");
  const saved = withoutCredentials(request);
  expect(JSON.stringify(saved)).not.toContain("planted");
  expect(saved).toMatchObject({
    mcpServers: [
      { name: "tools", connection: { url: "https://tools.example/mcp" } },
      { name: "other-example", connection: { url: "https://other.example/mcp" } },
      { connection: { url: "" } },
      { connection: { url: "https://plain.example/mcp" } },
    ],
    modelConnection: { endpoint: { baseUrl: "https://gateway.example/v1" }, credentials: [] },
  });
});
