import type { JsonObject, Permission } from "@ambit/core/contract";
import type { CallSubject } from "../values/call.js";
import { type ArgumentTexts, commandFields, head, maxPrefixLength, textsIn } from "./argument-texts.js";

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
