import type { ToolKind } from "@agentclientprotocol/sdk/unstable";
import { isJsonObject } from "@ambit/core/plugin";

/** Characters of a title. */
const maxTitle = 120;

/** By what agents call their own tools. The first that matches counts. */
const kinds: readonly (readonly [RegExp, ToolKind])[] = [
  [/bash|shell|exec|command|terminal|^run$/i, "execute"],
  [/grep|glob|search|find|^ls$|list/i, "search"],
  [/delete|remove/i, "delete"],
  [/move|rename/i, "move"],
  [/edit|write|patch|replace|create/i, "edit"],
  [/fetch|browse|http/i, "fetch"],
  [/read|view|cat/i, "read"],
  [/think/i, "think"],
];

/** What a call does, for the editor's symbol. Pure. */
export function kindOf(name: string, input: unknown): ToolKind {
  if (isJsonObject(input) && commandIn(input) !== undefined) return "execute";
  return kinds.find(([pattern]) => pattern.test(name))?.[1] ?? "other";
}

/**
 * One line that says what a call is about: its command, its file or its address, if it has one.
 * @param shown how a path is shown. Pure.
 */
export function titleOf(name: string, input: unknown, shown: (path: string) => string): string {
  if (!isJsonObject(input)) return name;
  const command = commandIn(input);
  if (command !== undefined) return onOneLine(command);
  const path = textIn(input, ["path", "file_path", "absolute_path", "filePath"]);
  if (path !== undefined) return onOneLine(`${name} ${shown(path)}`);
  const subject = textIn(input, ["url", "pattern", "query"]);
  return subject === undefined ? name : onOneLine(`${name} ${subject}`);
}

type Input = Readonly<Record<string, unknown>>;

function commandIn(input: Input): string | undefined {
  const { command } = input;
  if (Array.isArray(command) && command.every((word) => typeof word === "string")) return command.join(" ");
  return typeof command === "string" ? command : undefined;
}

function textIn(input: Input, keys: readonly string[]): string | undefined {
  return keys.map((key) => input[key]).find((value) => typeof value === "string");
}

function onOneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > maxTitle ? `${line.slice(0, maxTitle - 1)}…` : line;
}
