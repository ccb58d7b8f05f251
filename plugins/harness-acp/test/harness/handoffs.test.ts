import { describe, expect, it } from "vitest";
import { planLaunch } from "../../src/harness/launch.js";
import { AcpHarness } from "../../src/index.js";
import { opencode } from "../../src/profiles/opencode.js";
import { here } from "../support/harnesses.js";
import { requestOf } from "../support/runs.js";

const harness = new AcpHarness(opencode, { ...here, command: process.execPath });
const ask = { default: "ask" };
const rule = { default: "allow", rules: [{ pattern: "shell", permission: "ask" }] };
const modelConnection = { credentialMode: "none" };

describe("a request with a file that its agent would act on unasked", () => {
  it.each([
    [".opencode/plugin/x.js", "", ask, true],
    ["./.opencode/plugins/deep/x.js", "", ask, true],
    [".opencode/plugin/x.js", "", rule, true],
    [".opencode/plugin/x.js", "", { default: "allow" }, false],
    [".opencode/pluginsx/x.js", "", ask, false],
    ["opencode.json", '{"plugin":["./x.js"]}', ask, true],
    ["opencode.json", '{"\\u0070lugin":["./x.js"]}', ask, true],
    ["opencode.jsonc", '{"a":"{file:./more.json}"}', ask, true],
    ["opencode.json", '{"theme":"dark"}', ask, false],
  ])("%s with %s under %j: refused: %s", (path, content, permissions, refused) => {
    const request = requestOf({ modelConnection, permissions, harnessFiles: [{ path, content }] });
    const paths = harness.issues(request, "host", false).map((issue) => issue.path);
    expect(paths).toEqual(refused ? ["harnessFiles[0].path"] : []);
  });
});

describe("an agent is started behind a look at its workspace", () => {
  it.each([
    ["the request's permissions restrict its tools", ask, false, true],
    ["the operator denies tools", { default: "allow" }, true, true],
    ["everything is allowed", { default: "allow" }, false, false],
  ])("if %s", (_when, permissions, deniesTools, looks) => {
    const { argv, obeyed } = planLaunch({
      profile: opencode,
      env: {},
      servers: [],
      startId: "first",
      deniesTools,
      program: { argv: ["opencode"], searchPath: "/bin" },
      request: requestOf({ modelConnection, permissions }),
      sandbox: { home: "/h", workspace: "/w" },
    });
    expect(argv[0]).toBe(looks ? "/bin/sh" : "opencode");
    expect(obeyed.length > 0).toBe(looks);
  });
});
