import { expect, onTestFinished, test, vi } from "vitest";
import { repeatedNames } from "../../src/parse/checks.js";

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

test("thousands of headers, public and secret, are looked at once each", () => {
  const count = 2_000;
  const request = serverWith(
    numbers(count).map((at) => `x-${at}`),
    numbers(count).map((at) => `y-${at}`),
  );
  const lowered = vi.spyOn(String.prototype, "toLowerCase");
  onTestFinished(() => lowered.mockRestore());
  expect(repeatedNames(request)).toEqual([]);
  expect(lowered.mock.calls.length).toBeLessThan(10 * count);
});

test.each([
  ["./a//b", "a/b"],
  ["a/./b", "a/b/"],
])("%s and %s are the same path", (one, other) => {
  expect(repeatedNames({ harnessFiles: [{ path: one }, { path: other }] })).toMatchObject([
    { path: "harnessFiles[1].path", message: expect.stringContaining("is the same as harnessFiles[0].path") },
  ]);
});
