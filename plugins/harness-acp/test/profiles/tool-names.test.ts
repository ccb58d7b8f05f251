import { describe, expect, it } from "vitest";
import { codex } from "../../src/profiles/codex.js";
import { demo } from "../../src/profiles/demo.js";
import { gemini } from "../../src/profiles/gemini.js";
import { publishedTool } from "../../src/profiles/tool-names.js";

describe("names of tools", () => {
  it.each([
    { text: "mcp__ambit__lookup", found: { server: "ambit", name: "lookup" } },
    { text: "mcp__ambit__a__b", found: { server: "ambit", name: "a__b" } },
    { text: "mcp__ambit_two__x", found: { server: "ambit_two", name: "x" } },
    { text: "lookup (ambit MCP Server)", found: { server: "ambit", name: "lookup" } },
    { text: "mcp__other__lookup", found: undefined },
    { text: "mcp__ambit__", found: undefined },
    { text: undefined, found: undefined },
  ])("$text", ({ text, found }) => {
    const patterns = ["mcp__{server}__{tool}", "{tool} ({server} MCP Server)"];
    expect(publishedTool(text, patterns, ["ambit", "ambit_two"])).toEqual(found);
  });

  it.each([
    {
      what: "an MCP tool",
      call: { id: "mcp_ambit_lookup__x", title: "lookup (ambit MCP Server)", kind: "other", text: '{"a":1}' },
      tool: { server: "ambit", name: "lookup", input: { a: 1 } },
    },
    {
      what: "a shell command that looks like an MCP tool",
      call: { id: "run_shell_command__x", title: "lookup (ambit MCP Server)", kind: "execute" },
      tool: { name: "run_shell_command", input: { command: "lookup (ambit MCP Server)" } },
    },
    {
      what: "a file",
      call: { id: "read_file__x", title: "f", kind: "read", path: "/w/f" },
      tool: { name: "read_file", input: { file_path: "/w/f" } },
    },
    { what: "an unknown id", call: { id: "x", title: "t", kind: "edit" }, tool: { name: "write_file" } },
  ])("Gemini: $what", ({ call, tool }) => {
    expect(gemini.identify(call, ["ambit"])).toEqual(tool);
  });

  it.each([
    {
      what: "an MCP tool",
      call: { id: "c", kind: "execute", input: { server: "ambit", tool: "lookup", arguments: { a: 1 } } },
      tool: { server: "ambit", name: "lookup", input: { a: 1 } },
    },
    {
      what: "an MCP tool without arguments",
      call: { id: "c", kind: "execute", input: { server: "ambit", tool: "lookup" } },
      tool: { server: "ambit", name: "lookup", input: {} },
    },
    {
      what: "a shell command that looks like an MCP tool",
      call: { id: "c", title: "mcp.ambit.lookup", kind: "execute", input: { command: "mcp.ambit.lookup" } },
      tool: { name: "shell" },
    },
    {
      what: "a tool of an unknown server",
      call: { id: "c", title: "t", kind: "other", input: { server: "x", tool: "lookup", arguments: {} } },
      tool: { name: "t" },
    },
  ])("Codex: $what", ({ call, tool }) => {
    expect(codex.identify(call, ["ambit"])).toEqual(tool);
  });

  it("demo: a shell command that looks like an MCP tool is a shell command", () => {
    const call = { id: "c", title: "mcp__ambit__lookup", kind: "execute" };
    expect(demo.identify(call, ["ambit"])).toEqual({ name: "run" });
  });
});
