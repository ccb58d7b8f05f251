import type { JsonObject, ScriptedCall } from "./answer.js";
import { type OfferedTool, qualifiedName } from "./turn.js";

/** A call of a resolved tool, with the input in that tool's shape. */
export interface ResolvedCall {
  readonly tool: OfferedTool;
  readonly input: JsonObject;
}

/** The shell tools of Claude Code, OpenCode and Pi, Gemini CLI and Qwen Code, Codex, Cline. */
const SHELL_TOOLS = [
  "Bash",
  "bash",
  "run_shell_command",
  "exec_command",
  "shell_command",
  "shell",
  "local_shell",
  "execute_command",
  "run_commands",
];

/** The tool of a scripted call; undefined if the agent doesn't offer it. */
export function resolveCall(call: ScriptedCall, tools: readonly OfferedTool[]): ResolvedCall | undefined {
  if ("shell" in call) return resolveShell(call.shell, tools);
  if (call.tool.startsWith("=")) {
    return { tool: { name: call.tool.slice(1), form: "function" }, input: call.input };
  }
  const tool = findTool(call.tool, tools);
  return tool && { tool, input: call.input };
}

/** The exact name has priority, then its end, then any part of it; among equals, the first offered tool. */
export function findTool(wanted: string, tools: readonly OfferedTool[]): OfferedTool | undefined {
  const exact = (tool: OfferedTool) => qualifiedName(tool) === wanted || tool.name === wanted;
  const ending = (tool: OfferedTool) => {
    const name = qualifiedName(tool);
    return name.endsWith(wanted) && /[^A-Za-z0-9]$/.test(name.slice(0, -wanted.length));
  };
  const containing = (tool: OfferedTool) => qualifiedName(tool).includes(wanted);
  return tools.find(exact) ?? tools.find(ending) ?? tools.find(containing);
}

function resolveShell(command: string, tools: readonly OfferedTool[]): ResolvedCall | undefined {
  const tool = tools.find((offered) => SHELL_TOOLS.includes(offered.name));
  return tool && { tool, input: shellInput(command, tool) };
}

/** The tool's schema has the name of the command line's field, and whether it is a string or a list. */
function shellInput(command: string, tool: OfferedTool): JsonObject {
  if (tool.form === "local_shell") return { command: ["sh", "-c", command] };
  const properties = propertiesOf(tool.inputSchema);
  const described = "description" in properties ? { description: "Run the scripted command" } : {};
  if ("cmd" in properties) return { cmd: command, ...described };
  if ("commands" in properties) return { commands: [command], ...described };
  const isList = propertyType(properties.command) === "array";
  return { command: isList ? ["sh", "-c", command] : command, ...described };
}

function propertiesOf(schema: unknown): JsonObject {
  if (typeof schema !== "object" || schema === null || !("properties" in schema)) return {};
  const { properties } = schema;
  return typeof properties === "object" && properties !== null ? { ...properties } : {};
}

/** Gemini's schemas have types in upper case. */
function propertyType(property: unknown): string | undefined {
  if (typeof property !== "object" || property === null || !("type" in property)) return undefined;
  return typeof property.type === "string" ? property.type.toLowerCase() : undefined;
}
