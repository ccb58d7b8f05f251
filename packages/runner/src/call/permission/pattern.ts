import type { JsonObject, Permission } from "@ambit/core/contract";
import { type ArgumentTexts, head, maxPrefixLength, textsIn } from "./argument-texts.js";
import { commandsIn } from "./commands.js";

/** More names under which a pattern matches the agent's own tool. */
export interface ClassNames {
  readonly restricting: readonly string[];
  /** Without the names of published tools: a rule that allows the tool `fetch` doesn't mean the agent's own. */
  readonly allowing: readonly string[];
}

/** What a pattern is matched against. */
export interface PatternSubject {
  readonly name: string;
  /** More names for a tool of the agent's own: its classes. */
  readonly classNames?: ClassNames | undefined;
  /** Undefined when the agent doesn't report it. */
  readonly arguments: unknown;
  /** JSON Schema of the arguments, where the request declares it. */
  readonly inputSchema?: JsonObject | undefined;
}

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
 */
export function matchesPattern(pattern: string, effect: Permission, subject: PatternSubject): boolean {
  const parts = withPrefix.exec(pattern);
  if (parts === null) return isOf(pattern, effect, subject);
  const [, name = "", prefix = ""] = parts;
  if (!isOf(name, effect, subject)) return false;
  return effect === "allow" ? allows(head(prefix), subject) : restricts(head(prefix), subject);
}

function isOf(name: string, effect: Permission, subject: PatternSubject): boolean {
  if (name === subject.name) return true;
  const { restricting = [], allowing = [] } = subject.classNames ?? {};
  return (effect === "allow" ? allowing : restricting).includes(name);
}

function restricts(prefix: string, subject: PatternSubject): boolean {
  // Every call, with or without a text.
  if (prefix === "") return true;
  const { heads, complete } = textsOf(subject);
  return !complete || heads.some((text) => text.startsWith(prefix));
}

const known = new WeakMap<PatternSubject, ArgumentTexts>();

/** Read once per subject: there may be many rules, and the arguments may be large. */
function textsOf(subject: PatternSubject): ArgumentTexts {
  const texts = known.get(subject) ?? textsIn(subject.arguments);
  known.set(subject, texts);
  return texts;
}

function allows(prefix: string, { arguments: values, inputSchema }: PatternSubject): boolean {
  const commands = commandsIn(values, inputSchema);
  if (commands.length === 0) return false;
  if (prefix === "") return true;
  return commands.every(({ text, isShell }) => {
    const plain = text.trim();
    const doesMore = isShell ? chaining.test(plain) : leaving.test(plain);
    return !doesMore && head(plain).startsWith(prefix);
  });
}

/** What lets one line of a shell run a second command, or write a file. */
const chaining = /[;&|<>`\n\r]|\$\(/;
/** What makes a path or address lead elsewhere than its prefix suggests. */
const leaving = /(^|[\\/])\.\.([\\/]|$)/;
