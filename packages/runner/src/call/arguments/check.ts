import type { JsonObject } from "@ambit/core/contract";
import { Ajv, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { LRUCache } from "lru-cache";
import { RE2JS } from "re2js";

const options: Options = {
  strict: false,
  allErrors: true,
  validateFormats: false,
  logger: false,
  // `code` would name it in standalone code, which isn't generated here.
  code: { regExp: Object.assign((source: string) => patternOf(source), { code: "patternOf" }) },
};

/** JSON Schema's own schema takes 20 ms to compile, and is the same for every run. */
const checkers: { latest?: Ajv2020; older?: Ajv } = {};

/** Compiled schemas that are kept. */
const maxCompiled = 64;
/** Problems that are reported for one call. */
const maxReportedProblems = 20;
/** The longest message, in characters. */
const maxTextLength = 4_000;

/** Checks arguments against JSON Schemas. The schema determines how long that takes, so it runs in a worker. */
export class ArgumentsCheck {
  readonly #compiled = new LRUCache<string, ValidateFunction | Error>({
    max: maxCompiled,
    memoMethod: (schema) => compile(JSON.parse(schema)),
  });

  /**
   * The problem, in words that the model can act on; undefined if there is none.
   * @param tool its name, for messages.
   * @param schema as JSON.
   * @param given arguments, as JSON.
   */
  problem(tool: string, schema: string, given: string): string | undefined {
    const validate = this.#compiled.memo(schema);
    if (validate instanceof Error) {
      const reason = validate.message.slice(0, maxTextLength);
      return `Tool '${tool}' can't be called: its inputSchema is not a valid JSON Schema (${reason}).`;
    }
    if (validate(JSON.parse(given))) return undefined;
    const errors = validate.errors ?? [];
    const missing = errors.flatMap(({ keyword, params, instancePath }) =>
      keyword === "required" ? [dotted(`${instancePath}/${String(params.missingProperty)}`)] : [],
    );
    if (missing.length > 0) {
      const names = listed(missing, ", ");
      return `Tool '${tool}' missing required argument(s): ${names}. Retry the tool call with those argument fields populated.`;
    }
    const wrong = errors.map(({ instancePath, message, params }) => {
      const extra = params.additionalProperty;
      const path = dotted(typeof extra === "string" ? `${instancePath}/${extra}` : instancePath);
      return `${path === "" ? "arguments" : path} ${message ?? "is not valid"}`;
    });
    return `Tool '${tool}' was given wrong arguments: ${listed(wrong, "; ")}. Correct them and call it again.`;
  }
}

/**
 * By the dialect that `$schema` names: 2020-12, or draft-07 and older. Without one, 2020-12 is tried
 * first, as MCP specifies; many generators write draft-07 without naming it. Each schema gets its own validator:
 * two tools may use the same `$id`, and no request may refer to the schema of another.
 */
function compile(document: JsonObject): ValidateFunction | Error {
  // An asynchronous schema returns a promise, which is always truthy.
  const { $schema: dialect, $async: _asynchronous, ...schema } = document;
  const isOlder = typeof dialect === "string" && /draft-0[3-7]/.test(dialect);
  const byOlder = () => {
    checkers.older ??= new Ajv(options);
    requireSchema(checkers.older, schema);
    return new Ajv({ ...options, validateSchema: false }).compile(schema);
  };
  const byLatest = () => {
    checkers.latest ??= new Ajv2020(options);
    requireSchema(checkers.latest, schema);
    return new Ajv2020({ ...options, validateSchema: false }).compile(schema);
  };
  try {
    return isOlder ? byOlder() : byLatest();
  } catch (error) {
    const reason = error instanceof Error ? error : new Error(String(error));
    if (isOlder || dialect !== undefined) return reason;
    try {
      return byOlder();
    } catch {
      // Valid in neither dialect: reports the newer one's error.
      return reason;
    }
  }
}

function requireSchema(checker: Ajv | Ajv2020, schema: JsonObject): void {
  if (checker.validateSchema({ ...schema }) === true) return;
  throw new Error(`schema is invalid: ${checker.errorsText(checker.errors, { dataVar: "schema" })}`);
}

function listed(texts: readonly string[], separator: string): string {
  const distinct = [...new Set(texts)];
  const more =
    distinct.length > maxReportedProblems ? [`and ${distinct.length - maxReportedProblems} more`] : [];
  return [...distinct.slice(0, maxReportedProblems), ...more].join(separator).slice(0, maxTextLength);
}

function dotted(pointer: string): string {
  return pointer
    .replace(/^\//, "")
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(".");
}

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
