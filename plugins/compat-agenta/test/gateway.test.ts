import type { ToolOutcome } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import {
  type GatewayPolicy,
  gatewayDecision,
  gatewayPolicy,
  readableOutcome,
} from "../src/gateway-policy.js";
import { issuesOf, requestOf } from "./parsing.js";

const policy: GatewayPolicy = {
  integrations: {
    github: {
      provider: "composio",
      connection: "github-main",
      toolkitVersion: "20260901_00",
      tools: {
        LIST_ISSUES: { permission: "allow", readOnly: true },
        CREATE_ISSUE: { permission: "ask", readOnly: false },
        DELETE_REPO: { permission: "deny", readOnly: false },
      },
    },
  },
};
const run = (tool: unknown, integration: unknown = "github", toolArguments: unknown = {}) =>
  gatewayDecision("run", policy, { integration, tool, arguments: toolArguments });

describe("what the policy says about a call", () => {
  it("comes with where the platform finds the tool", () => {
    expect(run("CREATE_ISSUE")).toMatchObject({
      permission: "ask",
      context: {
        provider: "composio",
        integration: "github",
        connection: "github-main",
        tool: "CREATE_ISSUE",
        toolkit_version: "20260901_00",
      },
      details: { display: "github.CREATE_ISSUE", readOnly: false },
    });
  });

  it("is the same sentence for what is denied and what isn't there", () => {
    const denied = run("DELETE_REPO");
    expect(denied).toMatchObject({ kind: "denied" });
    for (const other of [
      run("NONE"),
      run("LIST_ISSUES", "gitlab"),
      run("toString"),
      run("x", "constructor"),
      run("__proto__"),
    ])
      expect(other).toEqual(denied);
  });

  it.each([
    [7],
    [{ integration: "github", tool: "LIST_ISSUES", arguments: "{}" }],
    [{ tool: "x" }],
    [undefined],
  ])("can't be read for %j", (input) => {
    expect(gatewayDecision("run", policy, input)).toMatchObject({ kind: "malformed" });
  });

  it("allows a search of what is configured", () => {
    expect(gatewayDecision("search", policy, { query: "issues" })).toMatchObject({
      permission: "allow",
      context: { provider: "composio", toolkit_versions: { github: "20260901_00" } },
    });
    expect(gatewayDecision("search", policy, { query: "x", integration: "slack" })).toMatchObject({
      kind: "denied",
    });
  });
});

describe("what the model reads of an answer", () => {
  const search = (output: string) => {
    const outcome = readableOutcome("search", policy, { status: "completed", output });
    return outcome.status === "parked"
      ? undefined
      : { status: outcome.status, ...JSON.parse(outcome.output) };
  };
  const match = (tool: string, more: object = {}) => ({ integration: "github", tool, ...more });

  it("names no tool that isn't permitted, and has nothing else of the platform's", () => {
    const results = [
      match("DELETE_REPO"),
      match("SECRET_TOOL"),
      match("LIST_ISSUES", { description: "Better than DELETE_REPO", input_schema: {}, internal: "x" }),
    ];
    expect(search(JSON.stringify({ results, trace: "y" }))).toEqual({
      status: "completed",
      results: [match("LIST_ISSUES", { description: "Better than …", input_schema: {} })],
      connected_integrations: ["github"],
    });
  });

  it("has five tools at most, and says so if there is none", () => {
    const results = Array.from({ length: 9 }, () => match("LIST_ISSUES"));
    expect(search(JSON.stringify({ results }))?.results).toHaveLength(5);
    expect(search('{"results": []}')).toMatchObject({ results: [], message: expect.any(String) });
  });

  it.each(["no JSON", "[]", '{"results": 7}'])("is an error that may be tried again: %s", (output) => {
    expect(search(output)).toMatchObject({
      status: "failed",
      code: "tool_search_unavailable",
      retryable: true,
    });
  });

  it("of an error, only permitted suggestions", () => {
    const error = {
      code: "tool_not_found",
      details: { suggestions: ["DELETE_REPO", "LIST_ISSUES", match("X")] },
    };
    const failed: ToolOutcome = {
      status: "failed",
      output: `Tool 'run_tool' failed: HTTP 404: ${JSON.stringify(error)}`,
    };
    const outcome = readableOutcome("run", policy, failed);
    expect(outcome).toMatchObject({ output: expect.stringContaining('"suggestions":["LIST_ISSUES"]') });
    expect(JSON.stringify(outcome)).not.toContain("DELETE_REPO");
  });
});

describe("the tools of the gateway", () => {
  const customTools = [
    { name: "run_tool", callRef: "gateway.run" },
    { name: "search_tools", callRef: "gateway.search" },
    { name: "other", callRef: "other" },
  ];
  const toolCallback = { endpoint: "https://a.example/tools/call" };

  it("are refused without the policy", () => {
    const request = requestOf({ customTools, toolCallback });
    expect(gatewayPolicy.issues(request)).toMatchObject([
      { path: "customTools[0].callRef", message: expect.stringContaining("needs a gatewayPolicy") },
      { path: "customTools[1].callRef" },
    ]);
  });

  it("are decided on by the request's policy, and no other tool is", () => {
    const request = requestOf({ customTools, toolCallback, gatewayPolicy: policy });
    expect(gatewayPolicy.issues(request)).toEqual([]);
    const decisions = request.customTools.map((tool) =>
      gatewayPolicy
        .forRun(request)
        ?.decide(tool, { integration: "github", tool: "DELETE_REPO", arguments: {} }),
    );
    expect(decisions).toMatchObject([{ kind: "denied" }, { kind: "malformed" }, undefined]);
  });
});

describe("a policy is read whole, or refused", () => {
  const integrations = (tools: unknown, toolkitVersion = "1") => ({
    gatewayPolicy: { integrations: { a: { provider: "p", connection: "c", toolkitVersion, tools } } },
  });
  const pathsOf = (body: unknown) => issuesOf(body).map(({ path }) => path);

  it.each<[body: object, path: string]>([
    [integrations({ T: { permission: "maybe" } }), "gatewayPolicy.integrations.a.tools"],
    [integrations({ T: { permission: "ask", until: 1 } }), "gatewayPolicy.integrations.a.tools"],
    [integrations({ T: { permission: "ask" } }, "latest"), "gatewayPolicy.integrations.a.toolkitVersion"],
    [integrations({ T: { permission: "ask" } }, " "), "gatewayPolicy.integrations.a.toolkitVersion"],
    [{ gatewayPolicy: { tier: 2, integrations: {} } }, "gatewayPolicy.tier"],
  ])("%j", (body, path) => {
    expect(pathsOf(body)).toContain(path);
  });

  it("a null hint is unknown", () => {
    expect(pathsOf(integrations({ T: { permission: "ask", readOnly: null } }))).toEqual([]);
  });

  it("of ten thousand integrations, each that is wrong has its place", () => {
    const wrong = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, at) => [`k${at}`, at === 5_000 ? 7 : 8]),
    );
    expect(pathsOf({ gatewayPolicy: { integrations: wrong } })).toHaveLength(101);
  });
});
