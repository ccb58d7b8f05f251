import { describe, expect, it } from "vitest";
import { findTool, resolveCall } from "../src/tools.js";
import type { OfferedTool } from "../src/turn.js";

function offered(...names: readonly string[]): readonly OfferedTool[] {
  return names.map((name) => ({ name, form: "function" }));
}

describe("findTool", () => {
  it.each([
    ["add", ["mcp_ambit_add", "add"], "add"],
    ["add", ["padded", "mcp_ambit_readd", "mcp_ambit_add"], "mcp_ambit_add"],
    ["add", ["mcp__ambit__add"], "mcp__ambit__add"],
    ["look", ["mcp_ambit_lookup"], "mcp_ambit_lookup"],
    ["gone", ["mcp_ambit_lookup"], undefined],
  ])("finds %s among %j", (wanted, names, found) => {
    expect(findTool(wanted, offered(...names))?.name).toBe(found);
  });

  it.each(["mcp__ambit", "mcp__ambit__"])(
    "finds a tool of the namespace %s by its qualified name",
    (namespace) => {
      const tools: readonly OfferedTool[] = [
        { name: "add", namespace: "mcp__other", form: "function" },
        { name: "add", namespace, form: "function" },
      ];
      expect(findTool("mcp__ambit__add", tools)).toBe(tools[1]);
    },
  );
});

describe("resolveCall", () => {
  it("sends a name after = unchanged", () => {
    const resolved = resolveCall({ tool: "=not_offered", input: { a: 1 } }, offered("read"));
    expect(resolved).toEqual({ tool: { name: "not_offered", form: "function" }, input: { a: 1 } });
  });

  const text = { type: "string" };
  it.each<[string, OfferedTool, object]>([
    [
      "Claude Code",
      { name: "Bash", form: "function", inputSchema: { properties: { command: text, description: text } } },
      { command: "ls", description: "Run the scripted command" },
    ],
    [
      "Gemini CLI",
      {
        name: "run_shell_command",
        form: "function",
        inputSchema: { properties: { command: { type: "STRING" } } },
      },
      { command: "ls" },
    ],
    [
      "Codex",
      { name: "exec_command", form: "function", inputSchema: { properties: { cmd: text } } },
      { cmd: "ls" },
    ],
    [
      "older Codex",
      { name: "shell", form: "function", inputSchema: { properties: { command: { type: "array" } } } },
      { command: ["sh", "-c", "ls"] },
    ],
    ["local shell", { name: "local_shell", form: "local_shell" }, { command: ["sh", "-c", "ls"] }],
    [
      "Cline",
      {
        name: "run_commands",
        form: "function",
        inputSchema: { properties: { commands: { type: "array" } } },
      },
      { commands: ["ls"] },
    ],
  ])("fills in the shell tool of %s", (_agent, tool, input) => {
    expect(resolveCall({ shell: "ls" }, [...offered("read"), tool])).toEqual({ tool, input });
  });

  it("finds no shell where none is offered", () => {
    expect(resolveCall({ shell: "ls" }, offered("read"))).toBeUndefined();
  });
});
