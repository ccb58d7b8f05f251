import { parseRunRequest } from "../../../src/parse/parse.js";
import "reflect-metadata";
import type { McpServer, RunRequest, ToolSpec } from "@ambit/core/contract";
import { says } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { AnswerUse, ApprovedCalls } from "../../../src/call/answer.js";
import type { Call, CallSubject } from "../../../src/call/call.js";
import { isPattern } from "../../../src/call/pattern.js";
import { permissionOf } from "../../../src/call/permissions.js";
import { Gatekeeper } from "../../../src/call/run-calls.js";
import { createWorld } from "../../fakes/world.js";
import { type PermissionCase, permissionCases } from "./cases/index.js";

const ledger = { claim: async () => true, settle: async () => {}, drop: async () => {} };

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

function callOf(one: PermissionCase): Call {
  const { arguments: input = { command: "git push origin" }, tool, server, readOnly, client } = one;
  const spec: ToolSpec = {
    name: "Bash",
    kind: client === true ? "client" : "callback",
    inputSchema: {},
    permission: tool,
    readOnly,
  };
  const connection: McpServer["connection"] = { type: "http", url: "https://a.example" };
  return {
    id: "1",
    publicId: "1",
    key: "",
    isReported: true,
    announcement: "announced",
    state: { name: "pending", claimed: true },
    name: "Bash",
    origin: server === undefined ? "request" : { server: "docs" },
    input,
    tool: spec,
    server: server === undefined ? undefined : { name: "docs", connection, policy: { permission: server } },
  };
}

function effectiveOf(one: PermissionCase, call: CallSubject) {
  const toolNames = { own: undefined, published: new Set(["Bash"]) };
  return permissionOf(call, {
    permissions: requestOf(one).permissions,
    ceiling: one.ceiling ?? [],
    toolNames,
  });
}

function gateOf(one: PermissionCase) {
  const call = callOf(one);
  const answers = one.stored === undefined ? [] : [one.stored === "allow"];
  const asked: string[] = [];
  // A call that the user fulfils isn't asked about.
  const effective = (wanted: CallSubject) => {
    const permission = effectiveOf(one, wanted);
    return permission === "ask" && one.client === true ? "allow" : permission;
  };
  const gate = new Gatekeeper(
    { effective, denial: () => ({ why: "denied", by: "rule" }) },
    { details: () => ({}) },
    {
      ask: async ({ name, read }) => {
        const approved = answers.shift();
        if (approved === undefined) asked.push(name);
        if (approved === undefined) return undefined;
        const answer = { output: { approved }, isError: false };
        return {
          value: read(answer).value,
          answer,
          use: new AnswerUse({ project: undefined, id: name }, "run", ledger),
        };
      },
    },
    new ApprovedCalls(),
  );
  return { gate, asked, call };
}

test("the golden table is large, without duplicates", () => {
  expect(permissionCases.length).toBeGreaterThanOrEqual(40);
  expect(new Set(permissionCases.map(({ name }) => name)).size).toBe(permissionCases.length);
});

describe.each(permissionCases)("$name", (one) => {
  test("the effective permission", () => {
    expect(effectiveOf(one, callOf(one))).toBe(one.expected.effective);
  });

  test("the outcome of the call when it is executed", async () => {
    const { gate, asked, call } = gateOf(one);
    expect((await gate.atExecution(call, never)).verdict).toBe(one.expected.verdict);
    expect(effectiveOf(one, call) === "deny").toBe(one.expected.effective === "deny");
    expect(asked).toHaveLength(one.expected.verdict === "park" ? 1 : 0);
  });

  test("the same if the agent asks and then executes", async () => {
    const { gate, call } = gateOf(one);
    expect((await gate.beforeCall(call, never)).verdict).toBe(one.expected.verdict);
    if (one.expected.verdict === "park") return;
    const second = await gate.atExecution(call, never);
    // A refusal is used up like any answer; what was allowed stays allowed, once.
    if (one.expected.verdict === "allow") expect(second.verdict).toBe("allow");
  });
});

describe("an approval of the agent's question", () => {
  const ask: PermissionCase = { name: "", mode: "ask", expected: { effective: "ask", verdict: "park" } };

  test("is for one execution", async () => {
    const { gate, call } = gateOf({ ...ask, stored: "allow" });
    expect((await gate.beforeCall(call, never)).verdict).toBe("allow");
    expect((await gate.atExecution(call, never)).verdict).toBe("allow");
    expect((await gate.atExecution(call, never)).verdict).toBe("park");
  });

  test("is for one server's tool and its arguments", async () => {
    const { gate, call } = gateOf({ ...ask, stored: "allow" });
    const bare = { ...call, tool: undefined };
    const docs = { ...bare, origin: { server: "docs" } };
    expect((await gate.beforeCall(docs, never)).verdict).toBe("allow");
    for (const origin of [{ server: "other" }, "agent", "request"] as const) {
      expect((await gate.atExecution({ ...bare, origin }, never)).verdict).toBe("park");
    }
    expect((await gate.atExecution({ ...docs, input: { command: "other" } }, never)).verdict).toBe("park");
    expect((await gate.atExecution(docs, never)).verdict).toBe("allow");
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

describe("a permission that can't be enforced on the agent's own tools is refused, not ignored", () => {
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
  ])("%s", async (_what, given: Given, supportsPermissionRequests, refusedAt) => {
    const { rules = [], pattern = "Bash(rm:*)", ceiling = [] } = given;
    const world = await createWorld({
      script: says("ok"),
      harness: { supportsPermissionRequests },
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

describe("the table of an MCP server's tools", () => {
  const permission = (name: string, policy: McpServer["policy"]) =>
    permissionOf(
      {
        name,
        origin: { server: "docs" },
        input: {},
        server: { name: "docs", connection: { type: "http", url: "https://a.example" }, policy },
      },
      {
        permissions: { default: "allow" },
        ceiling: [],
        toolNames: { own: undefined, published: new Set() },
      },
    );
  const toolPermissions = { wipe: "deny", echo: "allow" } as const;

  test.each<[name: string, policy: McpServer["policy"], expected: string]>([
    ["wipe", { permission: "allow" }, "allow"],
    ["wipe", { permission: "allow", toolPermissions }, "deny"],
    ["echo", { permission: "deny", toolPermissions }, "allow"],
    ["new", { permission: "allow", toolPermissions }, "ask"],
    ["new", { permission: "allow", toolPermissions, newToolPermission: "deny" }, "deny"],
    ["new", { permission: "allow", newToolPermission: "deny" }, "deny"],
    ["toString", { permission: "allow", toolPermissions }, "ask"],
  ])("%s under %j: %s", (name, policy, expected) => {
    expect(permission(name, policy)).toBe(expected);
  });
});
