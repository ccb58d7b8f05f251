import { type Issue, runRequestSchema } from "@ambit/core/contract";
import { describe, expect, test } from "vitest";
import { toCurrentSpelling } from "../../src/parse/compat/current-spelling.js";
import { type Level, levelOf } from "../../src/parse/level.js";
import { parseRunRequest } from "../../src/parse/parse.js";
import { golden } from "./golden-files.js";

function parsed(body: unknown) {
  const result = parseRunRequest(body);
  if (!result.ok) throw new Error(JSON.stringify(result.issues));
  return result.request;
}

function issuesOf(body: unknown): Issue[] {
  const result = parseRunRequest(body);
  return result.ok ? [] : result.issues;
}

const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The same value with every key of the contract in snake_case; opaque values stay. */
function inSnakeCase(value: unknown, level: Level | undefined): unknown {
  if (level === undefined || level.kind === "map") return value;
  if (level.kind === "list") {
    return Array.isArray(value) ? value.map((entry) => inSnakeCase(entry, level.element)) : value;
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [snakeCase(key), inSnakeCase(inner, level.keys.get(key))]),
  );
}

describe("snake_case", () => {
  test("is read at every level", () => {
    const current = golden("request-full");
    const older = inSnakeCase(current, levelOf(runRequestSchema));
    expect(Object.keys(older as object)).toContain("sandbox_permission");
    expect(parsed(older)).toEqual(parsed(current));
  });

  test.each<[path: string, body: unknown]>([
    ["session_id", { session_id: "a", sessionId: "b" }],
    ["customTools[0].input_schema", { customTools: [{ name: "a", inputSchema: {}, input_schema: {} }] }],
    [
      "sandboxPermission.resources.memory_mb",
      { sandboxPermission: { resources: { memoryMb: 1, memory_mb: 2 } } },
    ],
  ])("%s beside its twin is refused", (path, body) => {
    expect(issuesOf(body)).toEqual([
      { path, message: expect.stringMatching(/^is given twice: `\w+` is the same field/) },
    ]);
  });

  test("a null duplicate is ignored", () => {
    expect(parsed({ session_id: "a", sessionId: null }).sessionId).toBe("a");
    expect(parsed({ session_id: null, sessionId: "b" }).sessionId).toBe("b");
  });
});

test("a request of earlier wires is the same as its current form", () => {
  expect(parsed(golden("request-older-spellings"))).toEqual(
    parsed(golden("request-older-spellings.current")),
  );
});

describe("interactions.holdMs", () => {
  test("is read as waitMs, with a warning", () => {
    expect(parseRunRequest({ interactions: { hold_ms: 5 } })).toMatchObject({
      ok: true,
      request: { interactions: { waitMs: 5 } },
      warnings: [{ path: "interactions.holdMs", message: expect.stringContaining("`waitMs`") }],
    });
  });

  test("is refused together with waitMs, and if it isn't a number", () => {
    const path = "interactions.holdMs";
    expect(issuesOf({ interactions: { holdMs: 5, waitMs: 5 } })).toMatchObject([{ path }]);
    expect(issuesOf({ interactions: { holdMs: "5" } })).toMatchObject([{ path }]);
  });
});

describe("older fields", () => {
  test.each<[what: string, older: object, current: object]>([
    ["pi_core", { harness: "pi_core" }, { harness: "pi" }],
    ["pi_agenta", { harness: "pi_agenta" }, { harness: "pi" }],
    ["the in-process engine", { backend: "pi" }, { harness: "pi" }],
    ["an engine that names no agent", { backend: "rivet", harness: "claude" }, { harness: "claude" }],
    ["the policy auto", { permissionPolicy: "auto" }, { permissions: { default: "allow" } }],
    ["the policy deny", { permissionPolicy: "deny" }, { permissions: { default: "deny" } }],
    ["no policy", {}, { permissions: { default: "allow_reads" } }],
    ["a prompt alone", { prompt: "hi" }, { messages: [{ role: "user", content: "hi" }] }],
    [
      "a blank prompt",
      { prompt: " ", messages: [{ role: "user", content: "hi" }] },
      { messages: [{ role: "user", content: "hi" }] },
    ],
    [
      "a prompt after messages",
      { prompt: "b", messages: [{ role: "user", content: "a" }] },
      {
        messages: [
          { role: "user", content: "a" },
          { role: "user", content: "b" },
        ],
      },
    ],
    [
      "a prompt that is the last message too",
      { prompt: "a", messages: [{ role: "user", content: "a" }] },
      { messages: [{ role: "user", content: "a" }] },
    ],
    [
      "approval needed",
      { customTools: [{ name: "a", needsApproval: true }] },
      { customTools: [{ name: "a", permission: "ask" }] },
    ],
    [
      "approval not needed",
      { customTools: [{ name: "a", needsApproval: false }] },
      { customTools: [{ name: "a" }] },
    ],
    [
      "approval beside a permission",
      { customTools: [{ name: "a", needsApproval: true, permission: "deny" }] },
      { customTools: [{ name: "a", permission: "deny" }] },
    ],
    [
      "secrets",
      { secrets: { A_KEY: "x" }, provider: "a" },
      {
        modelConnection: {
          provider: "a",
          credentials: [{ binding: { kind: "environment", name: "A_KEY" }, value: "x" }],
        },
      },
    ],
    ["no secrets", { secrets: {} }, {}],
    [
      "no secrets beside a connection",
      { secrets: {}, modelConnection: { provider: "a" } },
      { modelConnection: { provider: "a" } },
    ],
    [
      "a provider alone",
      { provider: "a", credentialMode: "none" },
      { modelConnection: { provider: "a", credentialMode: "none" } },
    ],
    [
      "a server without a transport",
      { mcpServers: [{ name: "a", command: "x" }] },
      { mcpServers: [{ name: "a", connection: { type: "stdio", command: "x" } }] },
    ],
    [
      "a server whose tools are all meant",
      { mcpServers: [{ name: "a", command: "x", tools: [] }] },
      { mcpServers: [{ name: "a", connection: { type: "stdio", command: "x" } }] },
    ],
    ["an empty trace", { trace: {} }, {}],
    [
      "the network in a word",
      { sandbox_permission: { network: "restricted" } },
      { sandboxPermission: { network: "restricted" } },
    ],
  ])("%s", (_what, older, current) => {
    expect(parsed(older)).toEqual(parsed(current));
  });

  test.each<[path: string, message: RegExp, body: unknown]>([
    ["secrets", /older form of `modelConnection`/, { secrets: { A: "b" }, modelConnection: {} }],
    ["provider", /older form of `modelConnection`/, { provider: "a", modelConnection: {} }],
    [
      "permissionPolicy",
      /older form of `permissions`/,
      { permissionPolicy: "deny", permissions: { default: "allow" } },
    ],
    ["permissionPolicy", /must be one of "auto", "deny"/, { permissionPolicy: "allow" }],
    ["trace", /older form of `context`/, { trace: { traceparent: "00" }, context: {} }],
    ["trace", /older form of `telemetry`/, { trace: { endpoint: "https://x" }, telemetry: {} }],
    ["trace.traceParent", /did you mean `traceparent`/, { trace: { traceParent: "00" } }],
    ["prompt", /must be a string/, { prompt: 5 }],
    ["backend", /must be one of "rivet", "pi"/, { backend: "docker" }],
    [
      "customTools[0].needsApproval",
      /must be true or false/,
      { customTools: [{ name: "a", needsApproval: "yes" }] },
    ],
    [
      "mcpServers[0].url",
      /is not read with the transport "stdio"/,
      { mcpServers: [{ name: "a", command: "x", url: "https://x" }] },
    ],
    [
      "mcpServers[0].command",
      /is not read with the transport "http"/,
      { mcpServers: [{ name: "a", transport: "http", command: "x", url: "https://x" }] },
    ],
    [
      "mcpServers[0].connection",
      /together with the older fields/,
      { mcpServers: [{ name: "a", command: "x", connection: { type: "stdio", command: "y" } }] },
    ],
    [
      "mcpServers[0].policy",
      /together with the older fields/,
      { mcpServers: [{ name: "a", command: "x", permission: "ask", policy: {} }] },
    ],
    ["mcpServers[0].connection.command", /is required/, { mcpServers: [{ name: "a", transport: "stdio" }] }],
    ["modelConnection.credentials[0].value", /must be a string/, { secrets: { A: 5 } }],
  ])("%s %s", (path, message, body) => {
    expect(issuesOf(body)).toEqual([{ path, message: expect.stringMatching(message) }]);
  });
});

describe("unchanged parts", () => {
  test("a request in the current spelling is returned as the same object", () => {
    const body = golden("request-full");
    expect(toCurrentSpelling(body).body).toBe(body);
  });

  test("a body is never changed in place", () => {
    const body = golden("request-older-spellings");
    const before = structuredClone(body);
    parseRunRequest(body);
    expect(body).toEqual(before);
  });

  test("an unchanged tool next to a changed one isn't copied", () => {
    const tool = { name: "a", inputSchema: {} };
    const { body } = toCurrentSpelling({ customTools: [tool, { name: "b", call_ref: "c" }] });
    expect((body as { customTools: unknown[] }).customTools[0]).toBe(tool);
  });
});
