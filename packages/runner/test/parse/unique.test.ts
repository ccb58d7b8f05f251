import { expect, test } from "vitest";
import { repeatedNames } from "../../src/parse/unique.js";

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

function serverWith(headers: readonly string[], credentials: readonly string[]) {
  const connection = {
    type: "http",
    url: "https://mcp.example/",
    headers: Object.fromEntries(headers.map((name) => [name, "v"])),
    credentials: credentials.map((name) => ({ binding: { kind: "header", name }, value: "v" })),
  };
  return { mcpServers: [{ name: "a", connection }] };
}

test("a header that is public and secret is named as it is written", () => {
  expect(repeatedNames(serverWith(["X-Other", "X-Key", "x-key"], ["x-KEY"]))).toEqual([
    {
      path: "mcpServers[0].connection.credentials[0].binding.name",
      message: "is the header mcpServers[0].connection.headers.X-Key too: send it once, as a secret",
    },
  ]);
});

test.each([
  [
    "thousands of headers, public and secret",
    serverWith(
      numbers(5_000).map((at) => `x-${at}`),
      numbers(5_000).map((at) => `y-${at}`),
    ),
  ],
  [
    "paths of thousands of folders",
    { harnessFiles: numbers(2_400).map((at) => ({ path: "a/".repeat(2_000) + at, content: "" })) },
  ],
])("%s are compared in time with their number", (_what, request) => {
  const begin = performance.now();
  expect(repeatedNames(request)).toEqual([]);
  expect(performance.now() - begin).toBeLessThan(2_500);
});

test.each([
  ["./a//b", "a/b"],
  ["a/./b", "a/b/"],
])("%s and %s are the same path", (one, other) => {
  expect(repeatedNames({ harnessFiles: [{ path: one }, { path: other }] })).toMatchObject([
    { path: "harnessFiles[1].path", message: expect.stringContaining("is the same as harnessFiles[0].path") },
  ]);
});
