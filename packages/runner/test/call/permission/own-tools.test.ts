import type { PermissionQuestion } from "@ambit/core/plugin";
import type { ScriptedTurn } from "@ambit/fakes/harness";
import { describe, expect, it } from "vitest";
import { createWorld } from "../../fakes/world.js";

const ownTools = { run_command: "shell", write_file: "edit", read_file: "read", note: "other" } as const;
const published = [{ name: "fetch", kind: "callback", callRef: "fetch", permission: "allow" }];
const more = { customTools: published, toolCallback: { endpoint: "http://127.0.0.1:9/tools" } };

/** What the agent is answered when it asks. */
async function answerTo(question: Partial<PermissionQuestion>, permissions: object, ceiling: string[] = []) {
  let answer: unknown;
  const world = await createWorld({
    harness: { ownTools },
    ceiling,
    script: async function* ({ ask, tools }: ScriptedTurn) {
      tools();
      const asked = { toolCallId: "1", toolName: "run_command", input: { command: "rm -rf x" }, ...question };
      yield { type: "tool_call", id: "1", name: asked.toolName, input: asked.input };
      answer = await ask(asked);
      yield { type: "done", stopReason: "end_turn" };
    },
  });
  const { result } = await world.run({ ...more, permissions });
  return { answer, warnings: result.warnings };
}

const rule = (pattern: string, permission: string, mode = permission === "allow" ? "deny" : "allow") => ({
  default: mode,
  rules: [{ pattern, permission }],
});

describe("a pattern matches one of the agent's own tools by what it does", () => {
  it.each([
    ["its own name", {}, rule("run_command(rm:*)", "deny"), "deny"],
    ["its class", {}, rule("shell(rm:*)", "deny"), "deny"],
    ["its class, of another command", {}, rule("shell(ls:*)", "deny"), "allow"],
    ["Claude Code's name", {}, rule("Bash(rm:*)", "deny"), "deny"],
    ["Claude Code's name, allowing", {}, rule("Bash(rm:*)", "allow"), "allow"],
    ["another class", {}, rule("edit", "deny"), "allow"],
    [
      "a class that the agent tells",
      { toolName: "new_tool", toolClass: "shell" },
      rule("shell", "deny"),
      "deny",
    ],
    ["an input that it doesn't tell", { input: undefined }, rule("shell(rm:*)", "deny"), "deny"],
    ["an input that it doesn't tell, allowing", { input: undefined }, rule("shell(rm:*)", "allow"), "deny"],
  ] as const)("%s", async (_what, question, permissions, expected) => {
    expect((await answerTo(question, permissions)).answer).toBe(expected);
  });

  it("also in the operator's denials", async () => {
    expect((await answerTo({}, { default: "allow" }, ["Bash(rm:*)"])).answer).toBe("deny");
    expect((await answerTo({}, { default: "allow" }, ["shell(ls:*)"])).answer).toBe("allow");
  });

  it("an allow rule for a published tool doesn't apply to a class of the same name; a deny rule does", async () => {
    const own = { toolName: "get_page", toolClass: "fetch", input: { url: "http://a.example" } } as const;
    expect((await answerTo(own, rule("fetch", "allow"))).answer).toBe("deny");
    expect((await answerTo(own, rule("fetch", "deny"))).answer).toBe("deny");
    expect((await answerTo(own, rule("WebFetch", "allow"))).answer).toBe("allow");
  });

  it("never mistakes one of the agent's own tools for a published one of the same name", async () => {
    const own = { toolName: "fetch", input: { url: "http://a.example" } };
    expect((await answerTo(own, { default: "deny" })).answer).toBe("deny");
    expect((await answerTo({ ...own, server: "ambit" }, { default: "deny" })).answer).toBe("allow");
  });
});

describe("a rule that matches no tool of the run", () => {
  const ruleWarnings = async (pattern: string) => {
    const { warnings = [] } = await answerTo({}, rule(pattern, "deny"));
    return warnings.filter(({ path }) => path?.startsWith("permissions"));
  };

  it.each([
    [
      "rm(rf:*)",
      "'rm(rf:*)' matches no tool of this run: scripted's own tools are run_command, write_file, read_file, note",
    ],
    ["Execute", "shell, edit, read name them by what they do"],
    // The agent has none of that class.
    ["WebFetch", "'WebFetch' matches no tool"],
  ])("%s is warned of", async (pattern, message) => {
    expect(await ruleWarnings(pattern)).toEqual([
      { path: "permissions.rules[0].pattern", message: expect.stringContaining(message) },
    ]);
  });

  it.each(["run_command", "shell(rm:*)", "Bash(rm:*)", "fetch", "note"])("%s isn't", async (pattern) => {
    expect(await ruleWarnings(pattern)).toEqual([]);
  });

  it("is known only after an MCP server has listed its tools", async () => {
    const world = await createWorld({
      harness: { ownTools },
      script: async function* ({ tools }: ScriptedTurn) {
        tools("docs");
        yield { type: "done", stopReason: "end_turn" };
      },
    });
    const connection = { type: "http", url: "https://docs.example/mcp" };
    const body = { mcpServers: [{ name: "docs", connection }], permissions: rule("nothing", "deny") };
    expect(
      (await world.runner.plan({ ...body, messages: [{ role: "user", content: "x" }] })).warnings,
    ).toEqual([]);
    const { result } = await world.run(body);
    expect(result.warnings).toMatchObject([{ path: "permissions.rules[0].pattern" }]);
  });
});

describe("an agent that doesn't ask before it uses its own tools", () => {
  const allowing = (...patterns: string[]) => patterns.map((pattern) => ({ pattern, permission: "allow" }));
  it.each([
    [
      "nothing said: allow_reads",
      undefined,
      "'allow_reads' can't be enforced: allow them by rules for shell, edit ",
    ],
    [
      "default deny",
      { default: "deny" },
      "'deny' can't be enforced: allow them by rules for shell, edit, read ",
    ],
    ["default ask", { default: "ask" }, "'ask' can't be enforced"],
    ["default allow", { default: "allow" }, undefined],
    ["reads, and the rest by rules", { rules: allowing("shell", "edit") }, undefined],
    ["rules by the tools' names", { rules: allowing("run_command", "write_file") }, undefined],
    ["a rule for some commands", { rules: allowing("shell(ls:*)", "edit") }, "rules for shell "],
  ])("%s", async (_what, permissions, refusal) => {
    const world = await createWorld({ harness: { ownTools, supportsPermissionRequests: false } });
    const planned = world.runner.plan({
      messages: [{ role: "user", content: "x" }],
      permissions,
    });
    if (refusal === undefined) expect((await planned).plan.accepted).toBe(true);
    else {
      const message = expect.stringContaining(refusal);
      await expect(planned).rejects.toMatchObject({ issues: [{ path: "permissions.default", message }] });
    }
  });

  it("may have any tool if its harness doesn't list them", async () => {
    const world = await createWorld({ harness: { supportsPermissionRequests: false } });
    const body = { messages: [{ role: "user", content: "x" }] };
    await expect(world.runner.plan(body)).rejects.toThrow("shell, edit, fetch");
    const rules = allowing("shell", "edit", "fetch");
    expect((await world.runner.plan({ ...body, permissions: { rules } })).plan.accepted).toBe(true);
  });
});

it("reads the arguments of a reported call as often for one MCP server as for many", async () => {
  const readsWith = async (servers: number) => {
    let reads = 0;
    const input = {
      get command() {
        reads += 1;
        return "git push";
      },
    };
    const world = await createWorld({
      harness: { ownTools },
      script: async function* () {
        yield { type: "tool_call", id: "1", name: "unknown", input };
        yield { type: "done", stopReason: "end_turn" };
      },
    });
    const mcpServers = Array.from({ length: servers }, (_, index) => ({
      name: `server-${index}`,
      connection: { type: "http", url: "https://mcp.example/" },
    }));
    const rules = [{ pattern: "unknown(rm:*)", permission: "deny" }];
    const { events } = await world.run({ mcpServers, permissions: { default: "allow", rules } });
    expect(events.map(({ type }) => type)).toContain("tool_call");
    return reads;
  };
  expect(await readsWith(1)).toBeGreaterThan(0);
  expect(await readsWith(20)).toBe(await readsWith(1));
});
