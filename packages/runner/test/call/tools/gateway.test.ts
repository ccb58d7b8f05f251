import "reflect-metadata";
import type { GatewayPolicy } from "@ambit/core/contract";
import type { ToolOutcome } from "@ambit/core/plugin";
import { clientExecutor, FakeExecutor } from "@ambit/fakes/executor";
import { done, type ScriptedTurn } from "@ambit/fakes/harness";
import { describe, expect, it } from "vitest";
import { permittedOutcome } from "../../../src/call/tools/gateway/found-tools.js";
import { gatewayCall } from "../../../src/call/tools/gateway/policy.js";
import { createWorld, eventsOf } from "../../fakes/world.js";

const gatewayPolicy: GatewayPolicy = {
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
const run = (tool: unknown, integration: unknown = "github", given: unknown = {}) =>
  gatewayCall("run", gatewayPolicy, { integration, tool, arguments: given });

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
    expect(
      gatewayCall("run", undefined, { integration: "github", tool: "LIST_ISSUES", arguments: {} }),
    ).toEqual(denied);
  });

  it.each([
    [7],
    [{ integration: "github", tool: "LIST_ISSUES", arguments: "{}" }],
    [{ tool: "x" }],
    [undefined],
  ])("can't be read for %j", (input) => {
    expect(gatewayCall("run", gatewayPolicy, input)).toMatchObject({ kind: "malformed" });
  });

  it("allows a search of what is configured", () => {
    expect(gatewayCall("search", gatewayPolicy, { query: "issues" })).toMatchObject({
      permission: "allow",
      context: { provider: "composio", toolkit_versions: { github: "20260901_00" } },
    });
    expect(gatewayCall("search", gatewayPolicy, { query: "x", integration: "slack" })).toMatchObject({
      kind: "denied",
    });
  });
});

describe("what the model reads of an answer", () => {
  const search = (output: string) => {
    const outcome = permittedOutcome("search", gatewayPolicy, { status: "completed", output });
    return outcome.status === "parked"
      ? undefined
      : { status: outcome.status, ...JSON.parse(outcome.output) };
  };
  const found = (tool: string, more: object = {}) => ({ integration: "github", tool, ...more });

  it("names no tool that isn't permitted, and has nothing else of the platform's", () => {
    const results = [
      found("DELETE_REPO"),
      found("SECRET_TOOL"),
      found("LIST_ISSUES", { description: "Better than DELETE_REPO", input_schema: {}, internal: "x" }),
    ];
    expect(search(JSON.stringify({ results, trace: "y" }))).toEqual({
      status: "completed",
      results: [found("LIST_ISSUES", { description: "Better than …", input_schema: {} })],
      connected_integrations: ["github"],
    });
  });

  it("has five tools at most, and says so if there is none", () => {
    const results = Array.from({ length: 9 }, () => found("LIST_ISSUES"));
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
      details: { suggestions: ["DELETE_REPO", "LIST_ISSUES", found("X")] },
    };
    const failed: ToolOutcome = {
      status: "failed",
      output: `Tool 'run_tool' failed: HTTP 404: ${JSON.stringify(error)}`,
    };
    const outcome = permittedOutcome("run", gatewayPolicy, failed);
    expect(outcome).toMatchObject({ output: expect.stringContaining('"suggestions":["LIST_ISSUES"]') });
    expect(JSON.stringify(outcome)).not.toContain("DELETE_REPO");
  });
});

describe("a run with a gateway", () => {
  const customTools = [
    { name: "run_tool", callRef: "gateway.run", permission: "allow" },
    { name: "search_tools", callRef: "gateway.search", permission: "allow" },
  ];
  const request = { customTools, gatewayPolicy, toolCallback: { endpoint: "https://a.example/tools/call" } };

  async function called(
    input: Readonly<Record<string, unknown>>,
    more: object = {},
    ceiling: readonly string[] = [],
  ) {
    let output: unknown;
    const executor = new FakeExecutor();
    const world = await createWorld({
      ceiling,
      executors: [executor, clientExecutor()],
      script: async function* ({ tools }: ScriptedTurn) {
        yield { type: "tool_call", id: "1", name: "run_tool", input };
        output = await tools().call("run_tool", input);
        yield { type: "tool_result", id: "1", output };
        yield done;
      },
    });
    const told = await world.run({ ...request, ...more });
    return { told, output: JSON.stringify(output), calls: executor.calls };
  }
  const call = (tool: string) => ({
    integration: "github",
    tool,
    arguments: { a: 1 },
    context: { connection: "evil" },
  });

  it("executes what is allowed, with the context of the policy and not the model's", async () => {
    const { calls } = await called(call("LIST_ISSUES"));
    expect(calls).toMatchObject([{ context: { connection: "github-main", tool: "LIST_ISSUES" } }]);
  });

  it("asks where the policy asks, although the tool itself is allowed", async () => {
    const { calls, told } = await called(call("CREATE_ISSUE"));
    expect(calls).toEqual([]);
    expect(told.result.stopReason).toBe("paused");
    expect(eventsOf(told, "interaction_request")).toMatchObject([
      {
        kind: "user_approval",
        payload: {
          toolName: "run_tool",
          display: "github.CREATE_ISSUE",
          tool: "CREATE_ISSUE",
          readOnly: false,
        },
      },
    ]);
  });

  it.each(["DELETE_REPO", "NONE"])("doesn't execute %s", async (tool) => {
    const { calls, output } = await called(call(tool));
    expect(calls).toEqual([]);
    expect(output).toContain("isn't available here");
  });

  it("doesn't ask about arguments of another shape", async () => {
    const { calls, told, output } = await called({
      integration: "github",
      tool: "CREATE_ISSUE",
      arguments: "x",
    });
    expect([calls, eventsOf(told, "interaction_request")]).toEqual([[], []]);
    expect(output).toContain("must be an object");
  });

  it("can't allow what the operator denies", async () => {
    expect((await called(call("LIST_ISSUES"), {}, ["run_tool"])).calls).toEqual([]);
  });

  it("is refused without its policy", async () => {
    await expect(called(call("LIST_ISSUES"), { gatewayPolicy: undefined })).rejects.toMatchObject({
      issues: [{ path: "customTools[0].callRef" }, { path: "customTools[1].callRef" }],
    });
  });
});
