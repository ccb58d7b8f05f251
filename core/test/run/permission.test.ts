import { describe, expect, test } from "vitest";
import type { AgentEvent, McpServer, RunRequest, ToolSpec } from "../../src/contract/index.js";
import { parseRunRequest } from "../../src/contract/index.js";
import { Answers } from "../../src/run/answers.js";
import { Gatekeeper, type WantedCall } from "../../src/run/gatekeeper.js";
import { Interactions } from "../../src/run/interactions.js";
import { isPattern } from "../../src/run/permission/pattern.js";
import { permissionOf } from "../../src/run/permission/permission.js";
import { says } from "./fakes/harness.js";
import { createWorld } from "./fakes/world.js";
import { type PermissionCase, permissionCases } from "./permission-cases.js";

const never = new AbortController().signal;

function requestOf({ mode, rules = [] }: PermissionCase): RunRequest {
  const permissions = {
    default: mode,
    rules: rules.map(([pattern, permission]) => ({ pattern, permission })),
  };
  const parsed = parseRunRequest({ permissions });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.request;
}

function callOf(one: PermissionCase): WantedCall {
  const { arguments: input = { command: "git push origin" }, tool, server, readOnly, client } = one;
  const spec: ToolSpec = {
    name: "Bash",
    kind: client === true ? "client" : "callback",
    inputSchema: {},
    ...(tool === undefined ? {} : { permission: tool }),
    ...(readOnly === undefined ? {} : { readOnly }),
  };
  const connection: McpServer["connection"] = { type: "http", url: "https://a.example" };
  return {
    toolCallId: "1",
    name: "Bash",
    input,
    tool: spec,
    server: server === undefined ? undefined : { name: "docs", connection, policy: { permission: server } },
    byCaller: client === true,
  };
}

function gateOf(one: PermissionCase) {
  const events: AgentEvent[] = [];
  const emit = (event: AgentEvent) => {
    events.push(event);
  };
  const answers = new Answers();
  const call = callOf(one);
  if (one.stored !== undefined) {
    answers.add("Bash", call.input, { output: { approved: one.stored === "allow" }, isError: false });
  }
  const interactions = new Interactions(emit, 0);
  const gate = new Gatekeeper(requestOf(one), one.ceiling ?? [], answers, interactions, { id: "a" }, emit);
  return { gate, events, call };
}

test("the golden table is large, and no case stands in it twice", () => {
  expect(permissionCases.length).toBeGreaterThanOrEqual(40);
  expect(new Set(permissionCases.map(({ name }) => name)).size).toBe(permissionCases.length);
});

describe.each(permissionCases)("$name", (one) => {
  test("the permission in force", () => {
    const { tool, server, input } = callOf(one);
    const subject = {
      name: "Bash",
      tool: tool?.permission,
      server: server?.policy?.permission,
      readOnly: tool?.readOnly,
      arguments: input,
    };
    expect(permissionOf(subject, requestOf(one).permissions, one.ceiling)).toBe(one.expected.effective);
  });

  test("what happens to the call, where it is executed", async () => {
    const { gate, events, call } = gateOf(one);
    expect((await gate.execution(call, never)).verdict).toBe(one.expected.verdict);
    expect(gate.denies(call)).toBe(one.expected.effective === "deny");
    const asked = events.filter(({ type }) => type === "interaction_request");
    expect(asked).toHaveLength(one.expected.verdict === "park" ? 1 : 0);
  });

  test("the same when the agent asks, and then executes", async () => {
    const { gate, call } = gateOf(one);
    expect(await gate.question(call, never)).toBe(one.expected.verdict);
    if (one.expected.verdict === "park") return;
    const second = await gate.execution(call, never);
    // A refusal is used up like any answer; what was allowed stays allowed, once.
    if (one.expected.verdict === "allow") expect(second.verdict).toBe("allow");
  });
});

describe("answers", () => {
  const ask: PermissionCase = { name: "", mode: "ask", expected: { effective: "ask", verdict: "park" } };

  test("are used once, the oldest first", async () => {
    const { gate, call } = gateOf({ ...ask, stored: "allow" });
    gate.answers.add("Bash", call.input, { output: { approved: false }, isError: false });
    const verdicts = [];
    for (let turn = 0; turn < 3; turn += 1) verdicts.push((await gate.execution(call, never)).verdict);
    expect(verdicts).toEqual(["allow", "deny", "park"]);
  });

  test("are for canonical arguments: the order of keys is none", async () => {
    const { gate, call } = gateOf(ask);
    gate.answers.add(
      "Bash",
      { b: [1, { y: 1, x: 2 }], a: null },
      { output: { approved: true }, isError: false },
    );
    const other = { ...call, input: { a: null, b: [1, { x: 2, y: 1 }] } };
    const changed = { ...call, input: { a: null, b: [1, { x: 2, y: 2 }] } };
    expect((await gate.execution(changed, never)).verdict).toBe("park");
    expect((await gate.execution(other, never)).verdict).toBe("allow");
  });

  test("a consent to the agent's question is for one execution", async () => {
    const { gate, call } = gateOf({ ...ask, stored: "allow" });
    expect(await gate.question(call, never)).toBe("allow");
    expect((await gate.execution(call, never)).verdict).toBe("allow");
    expect((await gate.execution(call, never)).verdict).toBe("park");
  });

  test("a result names its call by id, by name and input, or not at all", () => {
    const answers = Answers.of([
      {
        role: "assistant",
        content: [{ type: "tool_call", toolCallId: "1", toolName: "a", input: { x: 1 } }],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", toolCallId: "1", output: "one" },
          { type: "tool_result", toolName: "b", input: { y: 2 }, text: "two", isError: true },
          { type: "tool_result", output: "nobody's" },
        ],
      },
    ]);
    expect(answers.take("output", "a", { x: 1 })).toEqual({ output: "one", isError: false });
    expect(answers.take("output", "a", { x: 1 })).toBeUndefined();
    expect(answers.take("output", "b", { y: 2 })).toEqual({ output: "two", isError: true });
  });

  test("an approval is taken from among outputs, and leaves them", () => {
    const answers = new Answers();
    answers.add("a", {}, { output: "text", isError: false });
    answers.add("a", {}, { output: { approved: true, interactionToken: "t" }, isError: false });
    expect(answers.take("approval", "a", {})?.output).toMatchObject({ approved: true });
    expect(answers.take("approval", "a", {})).toBeUndefined();
    expect(answers.take("output", "a", {})?.output).toBe("text");
  });
});

describe("a rule that could never match is refused", () => {
  test.each([
    ["Bash", true],
    ["Bash(git:*)", true],
    ["Bash(:*)", true],
    ["Bash(git status)", false],
    ["Bash(git *)", false],
    ["Bash(", false],
    ["(x:*)", false],
    ["Bash()", false],
  ])("%s", async (pattern, usable) => {
    expect(isPattern(pattern)).toBe(usable);
    const world = await createWorld({ script: says("ok") });
    const body = {
      messages: [{ role: "user", content: "x" }],
      permissions: { rules: [{ pattern, permission: "deny" }] },
    };
    const admitted = world.runner.plan(body);
    if (usable) expect((await admitted).plan.accepted).toBe(true);
    else await expect(admitted).rejects.toThrow("permissions.rules[0].pattern");
  });
});

describe("a permission that the agent's own tools can't be held to is refused, not passed over", () => {
  const published = [{ name: "send", kind: "callback", callRef: "send" }];
  test.each([
    ["a rule that denies a tool of its own", { rules: ["deny"] }, false, "permissions.rules[0].pattern"],
    ["a rule that asks for one", { rules: ["ask"] }, false, "permissions.rules[0].pattern"],
    ["a rule that allows one", { rules: ["allow"] }, false, undefined],
    ["a rule for a published tool", { rules: ["deny"], pattern: "send" }, false, undefined],
    ["the operator's denial of everything", { ceiling: true as const }, false, "harness: "],
    ["the operator's denial of one", { ceiling: ["Bash(rm:*)"] }, false, "harness: "],
    ["the operator's denial of a published tool", { ceiling: ["send"] }, false, undefined],
    ["the same, of an agent that asks", { rules: ["deny"], ceiling: true as const }, true, undefined],
  ])("%s", async (_what, given: Given, asksForOwnTools, refusedAt) => {
    const { rules = [], pattern = "Bash(rm:*)", ceiling = [] } = given;
    const world = await createWorld({
      script: says("ok"),
      harness: { asksForOwnTools },
      ceiling,
    });
    const planned = world.runner.plan({
      messages: [{ role: "user", content: "x" }],
      customTools: published,
      toolCallback: { endpoint: "http://127.0.0.1:9/tools" },
      permissions: { default: "allow", rules: rules.map((permission) => ({ pattern, permission })) },
    });
    if (refusedAt === undefined) expect((await planned).plan.accepted).toBe(true);
    else await expect(planned).rejects.toThrow(refusedAt);
  });

  interface Given {
    readonly rules?: readonly string[];
    readonly pattern?: string;
    readonly ceiling?: true | readonly string[];
  }
});
