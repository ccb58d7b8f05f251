import { readFileSync } from "node:fs";
import { type KnownShape, knownShapeOf, requestSchemaWith } from "@ambit/core/contract";
import { parseRunRequest } from "@ambit/runner";
import { describe, expect, test } from "vitest";
import { fields } from "../src/fields.js";
import { agenta } from "../src/index.js";
import { translate } from "../src/translate.js";
import { golden, issuesOf, requestOf } from "./parsing.js";

const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The same value with every key of the contract in snake_case; opaque values stay. */
function inSnakeCase(value: unknown, level: KnownShape | undefined): unknown {
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
    const older = inSnakeCase(current, knownShapeOf(requestSchemaWith([fields])));
    expect(Object.keys(older as object)).toContain("sandbox_permission");
    expect(requestOf(older)).toEqual(requestOf(current));
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
    expect(requestOf({ session_id: "a", sessionId: null }).sessionId).toBe("a");
    expect(requestOf({ session_id: null, sessionId: "b" }).sessionId).toBe("b");
  });
});

test("a request of earlier wires is the same as its current form", () => {
  expect(requestOf(golden("request-older-spellings"))).toEqual(
    requestOf(golden("request-older-spellings.current")),
  );
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
    expect(requestOf(older)).toEqual(requestOf(current));
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
    ["skills[0]", /names a skill without its content/, { skills: ["pdf"] }],
  ])("%s %s", (path, message, body) => {
    expect(issuesOf(body)).toEqual([{ path, message: expect.stringMatching(message) }]);
  });
});

describe("values of other SDKs", () => {
  test("the role developer is system", () => {
    const messages = [
      { role: "developer", content: "Be brief." },
      { role: "user", content: "hi" },
    ];
    expect(requestOf({ messages }).messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "hi" },
    ]);
  });

  test.each([[{ endpoint: null }], [{ endpoint: null, authorization: "Access x" }], [{}]])(
    "the callback %j is as good as absent",
    (toolCallback) => {
      expect(requestOf({ toolCallback })).not.toHaveProperty("toolCallback");
    },
  );
});

describe("a request in the contract's spelling", () => {
  test("is returned as the same object", () => {
    const body = golden("request-full") as Record<string, unknown>;
    expect(translate(body).request).toBe(body);
  });

  test("is never changed in place", () => {
    const body = golden("request-older-spellings");
    const before = structuredClone(body);
    requestOf(body);
    expect(body).toEqual(before);
  });

  test("has an unchanged tool next to a changed one, which isn't copied", () => {
    const tool = { name: "a", inputSchema: {} };
    const { request } = translate({ customTools: [tool, { name: "b", call_ref: "c" }] });
    expect((request as { customTools: unknown[] }).customTools[0]).toBe(tool);
  });

  test("isn't translated inside a caller's own values", () => {
    const inputSchema = { read_only: null, properties: { input_schema: {} } };
    const request = requestOf({ custom_tools: [{ name: "a", input_schema: inputSchema }] });
    expect(request.customTools[0]?.inputSchema).toBe(inputSchema);
  });
});

test("what is larger than its limit isn't translated, and refused for its size", () => {
  const tools = Array.from({ length: 1_001 }, () => ({ call_ref: "x" }));
  expect(issuesOf({ custom_tools: tools, skills: Array.from({ length: 257 }, () => "a") })).toEqual([
    { path: "customTools", message: "has 1,001 entries, 1,000 at most: send fewer" },
    { path: "skills", message: "has 257 entries, 256 at most: send fewer" },
  ]);
});

test.each<[path: string, message: string, body: Record<string, unknown>]>([
  ["sandbox_permision", "is not a known field: did you mean `sandboxPermission`?", { sandbox_permision: {} }],
  ["promt", "is not a known field: did you mean `prompt`?", { promt: "hi" }],
  [
    "mcpServers[0].comand",
    "is not a known field: did you mean `command`?",
    { mcpServers: [{ name: "a", comand: "y", connection: { type: "stdio", command: "x" } }] },
  ],
  [
    "__proto__",
    "is not a known field: remove it",
    JSON.parse('{"session_id":"x","__proto__":{"harness":"x"}}'),
  ],
])("%s is refused as unknown", (path, message, body) => {
  expect(issuesOf(body)).toEqual([{ path, message }]);
});

describe("without the plugin", () => {
  test.each<[path: string, body: Record<string, unknown>]>([
    ["session_id", { session_id: "a" }],
    ["prompt", { prompt: "hi" }],
    ["permissionPolicy", { permissionPolicy: "deny" }],
    ["secrets", { secrets: { A: "b" } }],
    ["detached", { detached: true }],
    ["trace", { trace: {} }],
    ["customTools[0].needsApproval", { customTools: [{ name: "a", needsApproval: true }] }],
    ["mcpServers[0].command", { mcpServers: [{ name: "a", command: "x" }] }],
    ["messages[0].role", { messages: [{ role: "developer", content: "x" }] }],
  ])("%s is refused by its path", (path, body) => {
    const parsed = parseRunRequest(body);
    expect(parsed.ok ? [] : parsed.issues.map((issue) => issue.path)).toContain(path);
    expect(issuesOf(body)).toEqual([]);
  });
});

test("every older field is in the README", () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const named = new Set(readme.match(/`[^`]*`/g)?.flatMap((code) => code.match(/\w+/g) ?? []));
  expect(
    Object.values(agenta.keys)
      .flat()
      .filter((key) => !named.has(key)),
  ).toEqual([]);
});
