import "reflect-metadata";
import { isJsonObject } from "@ambit/core/contract";
import type { ToolDecision, ToolPolicy } from "@ambit/core/plugin";
import { clientExecutor, FakeExecutor } from "@ambit/fakes/executor";
import { done, type ScriptedTurn } from "@ambit/fakes/harness";
import { describe, expect, it } from "vitest";
import { createWorld, eventsOf } from "../../fakes/world.js";

/** What it says of a call is what the call's argument `decision` is. */
const decisions: Readonly<Record<string, ToolDecision>> = {
  allow: { kind: "permitted", permission: "allow", context: { place: "here" }, details: {} },
  ask: { kind: "permitted", permission: "ask", context: {}, details: { display: "a call" } },
  deny: { kind: "denied", reason: "There is no such thing." },
  unclear: { kind: "malformed", problem: "'decision' is unclear." },
};

const policy: ToolPolicy = {
  name: "fake",
  issues: ({ customTools }) =>
    customTools.length === 1 ? [] : [{ path: "customTools", message: "must be one tool" }],
  forRun: () => ({
    decide: (tool, input) => {
      if (tool.name !== "governed" || !isJsonObject(input)) return undefined;
      return decisions[String(input.decision)];
    },
    readable: (_tool, outcome) =>
      outcome.status === "completed" ? { ...outcome, output: `read: ${outcome.output}` } : outcome,
  }),
};

async function called(decision: string, ceiling: readonly string[] = [], more: object = {}) {
  const input = { decision, context: { place: "elsewhere" } };
  let output: unknown;
  const executor = new FakeExecutor();
  const world = await createWorld({
    ceiling,
    toolPolicies: [policy],
    executors: [executor, clientExecutor()],
    script: async function* ({ tools }: ScriptedTurn) {
      yield { type: "tool_call", id: "1", name: "governed", input };
      output = await tools().call("governed", input);
      yield { type: "tool_result", id: "1", output };
      yield done;
    },
  });
  const told = await world.run({
    customTools: [{ name: "governed", callRef: "x", permission: "allow" }],
    toolCallback: { endpoint: "https://a.example/tools/call" },
    ...more,
  });
  return { told, output: JSON.stringify(output), calls: executor.calls };
}

describe("a policy on calls of a tool", () => {
  it("permits a call, with its own context and not the model's, and decides what the model reads", async () => {
    const { calls, output } = await called("allow");
    expect(calls).toMatchObject([{ context: { place: "here" } }]);
    expect(output).toContain("read: ");
  });

  it("asks, although the tool itself is allowed", async () => {
    const { calls, told } = await called("ask");
    expect(calls).toEqual([]);
    expect(told.result.stopReason).toBe("paused");
    expect(eventsOf(told, "interaction_request")).toMatchObject([
      { kind: "user_approval", payload: { toolName: "governed", display: "a call" } },
    ]);
  });

  it("denies with its reason", async () => {
    const { calls, output } = await called("deny");
    expect(calls).toEqual([]);
    expect(output).toContain("There is no such thing.");
  });

  it("doesn't ask about arguments that it can't read", async () => {
    const { calls, told, output } = await called("unclear");
    expect([calls, eventsOf(told, "interaction_request")]).toEqual([[], []]);
    expect(output).toContain("Tool 'governed' can't be called: 'decision' is unclear.");
  });

  it("can't allow what the operator denies", async () => {
    expect((await called("allow", ["governed"])).calls).toEqual([]);
  });

  it("refuses a request", async () => {
    await expect(called("allow", [], { customTools: [] })).rejects.toMatchObject({
      issues: [{ path: "customTools" }],
    });
  });
});
