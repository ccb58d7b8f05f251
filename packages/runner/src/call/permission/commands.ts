import type { JsonObject } from "@ambit/core/contract";
import { commandFields } from "./argument-texts.js";

/** A text that determines what a call does. */
export interface CommandText {
  readonly text: string;
  /** Whether a shell may read it; else it is a path, an address or a plain word. */
  readonly isShell: boolean;
}

/** Parameters that only describe a call, or hold what it writes. */
const otherTexts: ReadonlySet<string> = new Set([
  "description",
  "explanation",
  "reason",
  "content",
  "old_string",
  "new_string",
]);

/**
 * The texts that define what a call does: the arguments that its schema declares as the command, else its first declared
 * text. Without a schema it isn't known which one the tool reads, so all of its texts count. Empty when some of them
 * isn't a text.
 */
export function commandsIn(value: unknown, schema: JsonObject | undefined): readonly CommandText[] {
  if (typeof value === "string") return [{ text: value, isShell: true }];
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  const declared = declaredCommands(schema);
  const entries = Object.entries(value).filter(([key, inner]) =>
    declared === undefined ? !otherTexts.has(key) && mayBeText(inner) : declared.includes(key),
  );
  const commands = entries.map(([key, inner]) => commandOf(key, inner));
  return commands.every((command) => command !== undefined) ? commands : [];
}

/** Undefined when the schema declares no parameters. */
function declaredCommands(schema: JsonObject | undefined): readonly string[] | undefined {
  const properties = schema?.properties;
  if (typeof properties !== "object" || properties === null) return undefined;
  const names = Object.keys(properties);
  if (names.length === 0) return undefined;
  const commands = names.filter((name) => commandFields.has(name));
  if (commands.length > 0) return commands;
  const firstText = Object.entries(properties).find(
    ([, property]) =>
      typeof property === "object" && property !== null && "type" in property && property.type === "string",
  )?.[0];
  return firstText === undefined ? [] : [firstText];
}

function mayBeText(value: unknown): boolean {
  return typeof value === "string" || (typeof value === "object" && value !== null);
}

/** A text, or the words of a program's arguments. */
function commandOf(key: string, value: unknown): CommandText | undefined {
  const isShell = commandFields.has(key);
  if (typeof value === "string") return { text: value, isShell };
  if (!Array.isArray(value) || value.length === 0) return undefined;
  return value.every((word) => typeof word === "string") ? { text: value.join(" "), isShell } : undefined;
}
