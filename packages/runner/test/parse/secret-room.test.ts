import { describe, expect, it } from "vitest";
import { parseRunRequest } from "../../src/parse/parse.js";

const messages = [{ role: "user", content: "go" }];
const url = "https://example.com/";
const map = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`H${index}`, "x"]));
const server = (name: string, count: number) => ({
  name,
  connection: { type: "http", url, headers: map(count) },
});
const process = (count: number) => ({
  name: "p",
  connection: { type: "stdio", command: "x", env: map(count) },
});
const tool = (name: string, count: number) => ({ name, kind: "code", runtime: "node", env: map(count) });
const model = (count: number) => ({ provider: "openai", endpoint: { baseUrl: url, headers: map(count) } });
const credentials = (count: number) => ({
  credentials: Array.from({ length: count }, (_, index) => ({
    binding: { kind: "environment", name: `C${index}` },
    value: "x",
  })),
});
const telemetry = (count: number) => ({ exporters: { otlp: { endpoint: url, headers: map(count) } } });

/** Requests with that many headers and variables, by the field that has the last of them. */
const requests = (count: number): (readonly [string, object])[] => [
  ["mcpServers", { mcpServers: [server("a", 1_000), server("b", count - 1_000)] }],
  ["mcpServers", { mcpServers: [server("a", 1_000), process(count - 1_000)] }],
  ["customTools", { customTools: [tool("a", 1_000), tool("b", count - 1_000)] }],
  ["modelConnection", { modelConnection: model(count) }],
  ["modelConnection", { customTools: [tool("a", 1_000)], modelConnection: credentials(count - 1_000) }],
  ["telemetry", { mcpServers: [server("a", 1_000)], telemetry: telemetry(count - 1_000) }],
];

describe("a request's headers and variables", () => {
  it.each(requests(2_000))("may be two thousand together: %s", (path, request) => {
    const parsed = parseRunRequest({ messages, ...request });
    expect(parsed.ok ? [] : parsed.issues.filter((issue) => issue.path === path)).toEqual([]);
  });

  it.each(requests(2_001))(
    "are refused beyond that, and nothing else is said of them: %s",
    (path, request) => {
      expect(parseRunRequest({ messages, ...request })).toEqual({
        ok: false,
        issues: [
          { path, message: expect.stringContaining("2,000 headers, variables and credentials together") },
        ],
      });
    },
  );
});
