import { describe, expect, test } from "vitest";
import { golden, goldenNames, requestOf } from "./parsing.js";

describe("requests of the Agenta runner's callers", () => {
  test.each(goldenNames("reference-request-"))("%s parses", (name) => {
    expect(requestOf(golden(name))).toBeDefined();
  });

  test("a request of the Agenta runner parses to its meaning", () => {
    expect(requestOf(golden("reference-request-june-pi"))).toEqual({
      harness: "pi",
      sandbox: "local",
      sessionId: "sess-1",
      agentsMd: "You are a helpful assistant.",
      model: "openai-codex/gpt-5.5",
      messages: [{ role: "user", content: "hi" }],
      modelConnection: {
        credentialMode: "env",
        credentials: [
          {
            binding: { kind: "environment", name: "OPENAI_API_KEY" },
            value: "sk-test",
            usage: "opaque_http",
          },
        ],
      },
      tools: ["read", "write"],
      customTools: [
        {
          name: "get_user",
          description: "Get a user",
          inputSchema: { type: "object", properties: {} },
          callRef: "tools__composio__github__GET_THE_AUTHENTICATED_USER__github-tvn",
          kind: "callback",
          readOnly: true,
          permission: "allow",
        },
      ],
      toolCallback: { endpoint: "https://api.example/tools/call", authorization: "Access tok-123" },
      permissions: { default: "allow" },
      systemPrompt: "You are Pi.",
      appendSystemPrompt: "Be terse.",
      sandboxPermission: { network: { mode: "off", allowlist: [] }, enforcement: "strict" },
      mcpServers: [],
      skills: [],
      credentials: [],
      harnessFiles: [],
    });
  });

  test.each<[name: string, meaning: object]>([
    [
      "reference-request-qa-network",
      { harness: "pi", sandboxPermission: { network: "restricted", enforcement: "strict" } },
    ],
    [
      "reference-request-qa-filesystem",
      { harness: "pi", sandboxPermission: { filesystem: "readonly", enforcement: "strict" } },
    ],
    [
      "reference-request-qa-mcp",
      { harness: "pi", mcpServers: [{ name: "test", connection: { type: "stdio", command: "echo" } }] },
    ],
  ])("%s reaches the plan with its boundary", (name, meaning) => {
    expect(requestOf(golden(name))).toMatchObject({ ...meaning, messages: [] });
  });
});
