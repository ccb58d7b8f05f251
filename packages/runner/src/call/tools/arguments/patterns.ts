import { RE2JS } from "re2js";

/** The part of a regular expression that Ajv uses. */
interface Pattern {
  test(text: string): boolean;
}

/** The characters that JavaScript's `\s` matches, for use in a character class. */
const spaces =
  "\\t\\n\\x{b}\\f\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";

/** Escapes that mean the same in RE2. */
const sameEscapes = /[dDwW^$\\.*+?()[\]{}|/tnfr-]/;

/**
 * A JSON Schema pattern (ECMA-262 with the flag `u`), matched in linear time by RE2 where RE2 can express it. Anything
 * else is matched by V8, which backtracks: lookaround, backreferences, repetitions beyond 1,000, `\cX`, and what
 * `linear` excludes. Such a pattern can be slow, so it is used only where its time is limited.
 *
 * @throws SyntaxError for what isn't a pattern.
 */
export function patternOf(source: string): Pattern {
  const byV8 = new RegExp(source, "u");
  const expression = linear(source);
  if (expression === undefined) return byV8;
  try {
    return RE2JS.compile(expression);
  } catch {
    return byV8;
  }
}

/** The pattern in RE2's syntax with JavaScript's meaning; undefined where that isn't certain. Pure. */
export function linear(source: string): string | undefined {
  let expression = "";
  let inClass = false;
  for (let at = 0; at < source.length; at += 1) {
    const character = source.charAt(at);
    if (character === "\\") {
      const escaped = readEscape(source, at, inClass);
      if (escaped === undefined) return undefined;
      expression += escaped.text;
      at += escaped.length - 1;
    } else if (inClass) {
      // Only RE2 has POSIX classes, such as `[[:alpha:]]`.
      if (character === "[") return undefined;
      inClass = character !== "]";
      expression += character;
    } else if (character === "[") {
      const isNegated = source.charAt(at + 1) === "^";
      // An empty class matches nothing, and `[^]` everything; RE2 takes the bracket for a member.
      if (source.charAt(at + (isNegated ? 2 : 1)) === "]") return undefined;
      inClass = true;
      expression += isNegated ? "[^" : "[";
      if (isNegated) at += 1;
    } else expression += character === "." ? "[^\\n\\r\\x{2028}\\x{2029}]" : character;
  }
  return expression;
}

function readEscape(
  source: string,
  at: number,
  inClass: boolean,
): { readonly text: string; readonly length: number } | undefined {
  const letter = source.charAt(at + 1);
  if (letter === "s") return { text: inClass ? spaces : `[${spaces}]`, length: 2 };
  if (letter === "S" && !inClass) return { text: `[^${spaces}]`, length: 2 };
  if (letter === "v") return { text: "\\x{b}", length: 2 };
  // Not `\B`: V8 also matches it between the two halves of a surrogate pair.
  if (letter === "b" && !inClass) return { text: "\\b", length: 2 };
  if (sameEscapes.test(letter)) return { text: `\\${letter}`, length: 2 };
  const [whole, hex = ""] =
    /^\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4}))/.exec(source.slice(at, at + 6))?.filter(Boolean) ?? [];
  // Two escapes may be the halves of a surrogate pair.
  if (whole !== undefined && !/^[dD][89a-fA-F]/.test(hex.padStart(4, "0")))
    return { text: `\\x{${hex}}`, length: whole.length };
  // `\p{L}` and the like. RE2 itself refuses names that it doesn't know.
  const property = /^\\[pP]\{[A-Za-z_]+\}/.exec(source.slice(at, at + 64))?.[0];
  return property === undefined ? undefined : { text: property, length: property.length };
}

/** For Ajv's `code.regExp`. `code` would name it in standalone code, which isn't generated here. */
export const patternEngine = Object.assign((source: string) => patternOf(source), { code: "patternOf" });
