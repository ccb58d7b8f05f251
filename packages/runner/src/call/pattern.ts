/** Whether a rule's pattern matches a call: the pattern, and the texts of a call's arguments that it is compared with. */

import type { JsonObject, Permission } from "@ambit/core/contract";
import type { CallSubject } from "./call.js";

/** More names under which a pattern matches the agent's own tool. */
export interface ClassNames {
  readonly restricting: readonly string[];
  /** Without the names of published tools: a rule that allows the tool `fetch` doesn't mean the agent's own. */
  readonly allowing: readonly string[];
}

/** Whether a pattern matches a call, for what the pattern does to it. */
export type PatternMatcher = (pattern: string, effect: Permission) => boolean;

/** Whether a rule is of a form that can match a call. */
export function isPattern(pattern: string): boolean {
  const prefix = withPrefix.exec(pattern)?.[2];
  if (prefix === undefined) return !/[()]/.test(pattern);
  return prefix.length <= maxPrefixLength;
}

/** The tool that a pattern is about. */
export function patternName(pattern: string): string {
  return withPrefix.exec(pattern)?.[1] ?? pattern;
}

const withPrefix = /^([^()]+)\((.*):\*\)$/s;

/**
 * `Name`: every call of that tool, or of every tool of that class. `Name(prefix:*)`: depends on what the pattern does
 * to a call, since the agent chooses the arguments, their order and what else is among them:
 * - a `deny` or `ask` matches if any text at any depth begins with the prefix, and also where the arguments are too
 *   many or too deep to look through, or aren't known;
 * - an `allow` matches only if the argument that names the command, path or address begins with it, and holds nothing
 *   that could make it do something else as well (`;`, `|`, a second line, `..`).
 *
 * Not a shell policy: a shell has countless ways to write one command. What a prefix can't stop, the boundary does.
 *
 * The matcher compares each pattern once: a request may have a thousand, and the arguments may be large.
 *
 * @param classNames more names for a tool of the agent's own.
 */
export function patternMatcher(
  { name, input, tool }: Pick<CallSubject, "name" | "input" | "tool">,
  { restricting = [], allowing = [] }: Partial<ClassNames> = {},
): PatternMatcher {
  const texts = new CallTexts(input, tool);
  const isNamed = (toolName: string, effect: Permission) =>
    toolName === name || (effect === "allow" ? allowing : restricting).includes(toolName);
  const restricts = (prefix: string) => {
    // Every call, with or without a text.
    return prefix === "" || texts.mayBeginWith(prefix);
  };
  const allows = (prefix: string) => {
    const { commands } = texts;
    if (commands.length === 0) return false;
    if (prefix === "") return true;
    return commands.every(({ doesMore, begins }) => !doesMore && begins.startsWith(prefix));
  };
  const matches: PatternMatcher = (pattern, effect) => {
    const parts = withPrefix.exec(pattern);
    if (parts === null) return isNamed(pattern, effect);
    const [, toolName = "", prefix = ""] = parts;
    if (!isNamed(toolName, effect)) return false;
    return effect === "allow" ? allows(head(prefix)) : restricts(head(prefix));
  };
  const answers = { allow: new Map<string, boolean>(), other: new Map<string, boolean>() };
  return (pattern, effect) => {
    const earlier = answers[effect === "allow" ? "allow" : "other"];
    const answer = earlier.get(pattern) ?? matches(pattern, effect);
    earlier.set(pattern, answer);
    return answer;
  };
}

/** A text that determines what a call does, as a rule that allows it compares it. */
interface ComparedCommand {
  readonly begins: string;
  /** Whether it may do something else as well. */
  readonly doesMore: boolean;
}

/** What rules compare of one call's arguments. Each is read once. */
class CallTexts {
  /** In ascending order. */
  #all: ArgumentTexts | undefined;
  #commands: readonly ComparedCommand[] | undefined;

  constructor(
    readonly input: unknown,
    readonly tool: CallSubject["tool"],
  ) {}

  /** Whether any text begins with the prefix, or not all of them can be read. */
  mayBeginWith(prefix: string): boolean {
    this.#all ??= sorted(textsIn(this.input));
    const { complete, heads } = this.#all;
    if (!complete) return true;
    // The first text that isn't before the prefix begins with it, if any does.
    let [low, high] = [0, heads.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((heads[middle] ?? "") < prefix) low = middle + 1;
      else high = middle;
    }
    return heads[low]?.startsWith(prefix) === true;
  }

  /** Empty where it isn't known what the call does. */
  get commands(): readonly ComparedCommand[] {
    this.#commands ??= commandsIn(this.input, this.tool?.inputSchema).map(({ text, isShell }) => {
      const plain = text.trim();
      return { begins: head(plain), doesMore: (isShell ? chaining : leaving).test(plain) };
    });
    return this.#commands;
  }
}

function sorted({ complete, heads }: ArgumentTexts): ArgumentTexts {
  // By code units, as `<` compares.
  return { complete, heads: heads.toSorted((one, other) => (one < other ? -1 : one > other ? 1 : 0)) };
}

/** What lets one line of a shell run a second command, or write a file. */
const chaining = /[;&|<>`\n\r]|\$\(/;
/** What makes a path or address lead elsewhere than its prefix suggests. */
const leaving = /(^|[\\/])\.\.([\\/]|$)/;

/** A text that determines what a call does. */
interface CommandText {
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
function commandsIn(value: unknown, schema: JsonObject | undefined): readonly CommandText[] {
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

/** Length of a text, with white space normalised, that a prefix is compared with. */
const maxPrefixLength = 256;
/** Values and keys of one call's arguments that are read. */
const maxValues = 5_000;
/** Levels of nesting that are read. */
const deepest = 64;

/** The beginnings of the texts in a call's arguments. */
interface ArgumentTexts {
  readonly heads: readonly string[];
  /** False if there are more or deeper values than are read, or if the arguments are unknown. */
  readonly complete: boolean;
}

/**
 * Every text at any depth of a call's arguments, regardless of the keys' order: strings, numbers, booleans and keys,
 * except the names of parameters at the top. Texts that follow each other are also read as one (`["rm", "-rf"]` begins
 * with `rm -rf`).
 */
export function textsIn(value: unknown): ArgumentTexts {
  if (value === undefined) return { heads: [], complete: false };
  const texts: string[] = [];
  const waiting: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }];
  let looked = 0;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value: inner, depth } = next;
    looked += 1;
    if (typeof inner === "string") texts.push(head(inner));
    else if (typeof inner === "number" || typeof inner === "boolean") texts.push(String(inner));
    else if (typeof inner === "object" && inner !== null) {
      const room = maxValues - looked - waiting.length;
      const parts = depth < deepest ? valuesAndKeys(inner, depth, room) : undefined;
      if (parts === undefined) return { heads: joined(texts), complete: false };
      for (const part of parts.toReversed()) waiting.push({ value: part, depth: depth + 1 });
    }
  }
  return { heads: joined(texts), complete: true };
}

/** A text's beginning, each white space in it as one space, without any at the front and without invisible characters. */
export function head(text: string): string {
  let beginning = "";
  // Of two parts, one is visible: however long the text is, a few of them are enough.
  for (const [part] of text.matchAll(/[\s\p{Z}\p{Cc}\p{Cf}]+|[^\s\p{Z}\p{Cc}\p{Cf}]+/gu)) {
    if (!invisible.test(part)) beginning += part.slice(0, maxPrefixLength);
    else if (beginning !== "" && blank.test(part)) beginning += " ";
    if (beginning.length >= maxPrefixLength) break;
  }
  return beginning.slice(0, maxPrefixLength);
}

const invisible = /^[\s\p{Z}\p{Cc}\p{Cf}]/u;
const blank = /[\s\p{Z}\p{Cc}]/u;

/** Keys and values, the command first and its arguments behind it. Undefined when there are more than `room`. */
function valuesAndKeys(container: object, depth: number, room: number): readonly unknown[] | undefined {
  if (Array.isArray(container)) return container.length > room ? undefined : container;
  const keys = Object.keys(container);
  if (2 * keys.length > room) return undefined;
  const rank = (key: string) => (commandFields.has(key) ? 0 : argumentFields.has(key) ? 1 : 2);
  const entries = Object.entries(container).sort(([a], [b]) => rank(a) - rank(b));
  const telling = keys.filter((key) => depth > 0 || !parameterName.test(key));
  return [...entries.map(([, value]) => value), ...telling];
}

const parameterName = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const argumentFields: ReadonlySet<string> = new Set(["args", "argv", "arguments"]);

/** Parameters that hold a shell's command or a program. */
const commandFields: ReadonlySet<string> = new Set(["command", "cmd", "script", "code"]);

/** Each text, joined with those that follow it. */
function joined(texts: readonly string[]): string[] {
  const nonEmpty = texts.filter((text) => text !== "");
  return nonEmpty.map((text, index) => {
    let line = text;
    for (let next = index + 1; next < nonEmpty.length && line.length < maxPrefixLength; next += 1) {
      line += ` ${nonEmpty[next]}`;
    }
    return line;
  });
}
