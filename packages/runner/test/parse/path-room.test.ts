import { describe, expect, it } from "vitest";
import { parseRunRequest } from "../../src/parse/parse.js";

const messages = [{ role: "user", content: "go" }];
const files = (count: number, length: number) =>
  Array.from({ length: count }, (_, index) => ({
    path: "a/".repeat(length / 2 - 4) + String(index).padStart(8, "0"),
    content: "",
  }));
const skill = (name: string, count: number, length: number) => ({
  name,
  description: "d",
  body: "b",
  files: files(count, length),
});
const source = (into: string, count: number, length: number) => ({
  type: "files",
  into,
  files: files(count, length),
});

describe("the paths of a request's files", () => {
  it.each([
    ["harnessFiles", { harnessFiles: files(500, 4_000) }],
    ["skills", { skills: [skill("a", 1_000, 1_000), skill("b", 1_000, 1_000)] }],
    ["workspace", { workspace: { sources: [source("a", 1_000, 1_000), source("b", 1_000, 1_000)] } }],
  ])("may have two million characters together: %s", (_path, request) => {
    expect(parseRunRequest({ messages, ...request })).toMatchObject({ ok: true });
  });

  it.each([
    ["harnessFiles", { harnessFiles: files(600, 4_000) }],
    ["skills", { skills: [skill("a", 1_100, 1_000), skill("b", 1_100, 1_000)] }],
    ["workspace", { workspace: { sources: [source("a", 1_100, 1_000), source("b", 1_100, 1_000)] } }],
    ["skills", { harnessFiles: files(500, 4_000), skills: [skill("a", 200, 1_000)] }],
  ])("are refused beyond that, and nothing else is said of them: %s", (path, request) => {
    const parsed = parseRunRequest({ messages, ...request });
    expect(parsed).toEqual({
      ok: false,
      issues: [{ path, message: expect.stringContaining("2,097,152 characters together") }],
    });
  });

  it("leave the faults of other fields to be found", () => {
    const parsed = parseRunRequest({ messages, harnessFiles: files(600, 4_000), harness: 1 });
    expect(parsed.ok ? [] : parsed.issues.map(({ path }) => path)).toEqual(["harnessFiles", "harness"]);
  });
});
