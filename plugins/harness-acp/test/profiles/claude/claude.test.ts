import { describe, expect, it } from "vitest";
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

describe("denials in a request's own settings of Claude Code", () => {
  const deny = ["mcp__agenta-tools__send", "mcp__agenta-tools__*", "Bash(rm:*)", "mcp__other__x"];
  const settings = JSON.stringify({ permissions: { deny } });

  it.each([".claude/settings.json", "./.claude/settings.local.json"])(
    "apply, to published tools under the Agenta runner's names too: %s",
    (path) => {
      expect(denials(path, settings)).toEqual([...deny, "mcp__ambit__send", "mcp__ambit__*"]);
    },
  );

  it.each(["{", "[]", '{"permissions":{"deny":"all"}}', '{"permissions":null}'])(
    "are none in %s",
    (content) => {
      expect(denials(".claude/settings.json", content)).toEqual([]);
    },
  );

  it("are none in another file", () => {
    expect(denials("settings.json", settings)).toEqual([]);
  });
});
