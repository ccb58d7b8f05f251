import { describe, expect, it } from "vitest";
import { AcpHarness } from "../../../src/index.js";
import { claude } from "../../../src/profiles/claude.js";
import { requestOf } from "../../support/runs.js";

function denials(path: string, content: string): unknown {
  const request = requestOf({ harnessFiles: [{ path, content }] });
  const servers = [{ name: "ambit", url: "http://127.0.0.1:9/", headers: {} }];
  const places = { home: "/home", workspace: "/w", fresh: "/home/fresh" };
  const given = { ...places, request, model: "m", endpoint: {}, searchPath: "/bin" };
  const { sessionMeta } = claude.prepare({ ...given, servers });
  return Object(sessionMeta).claudeCode.options.settings.permissions.deny;
}

function issues(path: string, content: string) {
  return new AcpHarness(claude, { folder: import.meta.dirname })
    .issues(requestOf({ harnessFiles: [{ path, content }] }), "image", true)
    .filter((issue) => issue.path.startsWith("harnessFiles"));
}

describe("denials in a request's own settings of Claude Code", () => {
  const deny = ["mcp__agenta-tools__send", "mcp__agenta-tools__*", "Bash(rm:*)", "mcp__other__x"];
  const settings = JSON.stringify({ permissions: { deny } });

  it.each([".claude/settings.json", "./.claude/settings.local.json"])(
    "apply, to published tools under the Agenta runner's names too: %s",
    (path) => {
      expect(denials(path, settings)).toEqual([...deny, "mcp__ambit__send", "mcp__ambit__*"]);
    },
  );

  it.each(["", "{}", '{"permissions":null}', '{"permissions":{"deny":null}}'])(
    "are none in '%s'",
    (content) => {
      expect(denials(".claude/settings.json", content)).toEqual([]);
      expect(issues(".claude/settings.json", content)).toEqual([]);
    },
  );

  it("are none in another file", () => {
    expect(denials("settings.json", settings)).toEqual([]);
    expect(issues("settings.json", "{")).toEqual([]);
  });

  it.each([
    ["is cut off", "{", "isn't valid JSON"],
    ["isn't an object", "[]", "isn't an object whose permissions.deny is a list of at most 1,000 texts"],
    ["has another form", '{"permissions":{"deny":"all"}}', "isn't an object whose permissions.deny"],
    ["denies too much", JSON.stringify({ permissions: { deny: Array(1_001).fill("x") } }), "at most 1,000"],
    [
      "has too many values",
      `{"permissions":{"deny":["x"]},"more":[${"[],".repeat(10_000)}0]}`,
      "10,000 values",
    ],
    ["is nested too deep", `{"more":${"[".repeat(100)}${"]".repeat(100)}}`, "64 levels"],
  ])("refuse a request whose file %s", (_what, content, problem) => {
    expect(issues("./.claude/settings.json", content)).toEqual([
      { path: "harnessFiles[0].content", message: expect.stringContaining(problem) },
    ]);
    expect(issues("./.claude/settings.json", content)[0]?.message).toContain(
      "so what .claude/settings.json denies can't be applied",
    );
  });
});
