import type { Permission } from "@ambit/core/contract";
import type { CallSubject } from "../values/call.js";
import { head, maxPrefixLength } from "./argument-texts.js";
import { CallTexts } from "./call-texts.js";

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
  const isNamed = (given: string, effect: Permission) =>
    given === name || (effect === "allow" ? allowing : restricting).includes(given);
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
    const [, given = "", prefix = ""] = parts;
    if (!isNamed(given, effect)) return false;
    return effect === "allow" ? allows(head(prefix)) : restricts(head(prefix));
  };
  const found = { allow: new Map<string, boolean>(), other: new Map<string, boolean>() };
  return (pattern, effect) => {
    const known = found[effect === "allow" ? "allow" : "other"];
    const answer = known.get(pattern) ?? matches(pattern, effect);
    known.set(pattern, answer);
    return answer;
  };
}
