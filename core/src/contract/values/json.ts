import { z } from "zod";

export type JsonObject = { readonly [key: string]: unknown };

/**
 * A JSON object that is passed on unchanged: tool arguments, JSON Schemas, opaque context. Its contents are neither
 * checked nor copied.
 */
export const jsonObjectSchema = z
  .custom<Record<string, unknown>>(isJsonObject, { error: "must be an object" })
  .meta({ type: "object" });

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Limits on a JSON text from outside. The number of values is what parsing costs: 33 MB of `{},{},…` take 8 s and
 * 2.5 GB, one string of that length takes milliseconds.
 */
export interface JsonLimits {
  /** The maximum number of characters. */
  readonly maxLength: number;
  /** The maximum number of lists, objects, keys, strings, numbers and literals. An empty list or object counts twice. */
  readonly maxValues: number;
  /** The maximum number of nested lists and objects. */
  readonly maxDepth: number;
}

/**
 * The limits on one message of a tool or a server. Counting and parsing the most expensive message (every key of every object
 * different) blocks the event loop for about 50 ms, an ordinary one for less than 10. A worker thread saves nothing: copying
 * its result back blocks the event loop for longer than parsing.
 */
export const messageJsonLimits: JsonLimits = {
  maxLength: 8 * 1024 * 1024,
  maxValues: 100_000,
  maxDepth: 256,
};

const whatTooMuch = {
  maxLength: "characters",
  maxValues: "values",
  maxDepth: "levels of lists and objects within each other",
} as const satisfies Record<keyof JsonLimits, string>;

/** The text exceeds a limit. It wasn't parsed. The message is a predicate: "holds more than 100,000 values". */
export class JsonTooLarge extends Error {
  override readonly name = "JsonTooLarge";

  constructor(
    readonly exceeded: keyof JsonLimits,
    /** The limit's value. */
    readonly limit: number,
  ) {
    super(`holds more than ${limit.toLocaleString("en")} ${whatTooMuch[exceeded]}`);
  }
}

/** The size of a JSON text. For any other text, the figures mean nothing. */
export interface JsonSize {
  /** The number of values, counted as for `JsonLimits.maxValues`. */
  readonly values: number;
  /** The number of keys of all objects, repeated ones included. */
  readonly members: number;
}

/**
 * `JSON.parse` of a text that is within the limits.
 *
 * @throws JsonTooLarge before anything is parsed, or a SyntaxError
 */
export function parseBoundedJson(text: string, limits: JsonLimits = messageJsonLimits): unknown {
  return parseCountedJson(text, limits).value;
}

/**
 * Parses a text that is within the limits, and returns its size too.
 *
 * @throws JsonTooLarge before anything is parsed, or a SyntaxError
 */
export function parseCountedJson(
  text: string,
  limits: JsonLimits = messageJsonLimits,
): { readonly value: unknown } & JsonSize {
  const size = requireJsonWithin(text, limits);
  const value: unknown = JSON.parse(text);
  return { value, ...size };
}

const code = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  openList: 0x5b,
  backslash: 0x5c,
  closeList: 0x5d,
  openObject: 0x7b,
  closeObject: 0x7d,
} as const;

/**
 * Counts without parsing: one pass, 3 to 5 ns per character outside strings, and strings are skipped. Ends at
 * the first value or level too many. Pure.
 *
 * @throws JsonTooLarge
 */
function requireJsonWithin(text: string, { maxLength, maxValues, maxDepth }: JsonLimits): JsonSize {
  if (text.length > maxLength) throw new JsonTooLarge("maxLength", maxLength);
  // Every value but the outermost follows a comma, a colon, or the beginning of a list or object.
  let values = 1;
  let members = 0;
  let strings = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case code.quote:
        strings += 1;
        // More than the other marks allow, so it isn't JSON; skipping each costs more than a character.
        if (strings > maxValues) throw new JsonTooLarge("maxValues", maxValues);
        at = endOfString(text, at + 1);
        continue;
      case code.openList:
      case code.openObject:
        values += 1;
        depth += 1;
        if (depth > maxDepth) throw new JsonTooLarge("maxDepth", maxDepth);
        break;
      case code.closeList:
      case code.closeObject:
        depth -= 1;
        break;
      case code.colon:
        members += 1;
        values += 1;
        break;
      case code.comma:
        values += 1;
        break;
      default:
        continue;
    }
    if (values > maxValues) throw new JsonTooLarge("maxValues", maxValues);
  }
  return { values, members };
}

/** @returns the index of the closing quote of the string whose content begins there; the end of a text without one */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at !== -1; at = text.indexOf('"', at + 1)) {
    let first = at;
    while (first > from && text.charCodeAt(first - 1) === code.backslash) first -= 1;
    // An odd number of backslashes escapes the quote.
    if ((at - first) % 2 === 0) return at;
  }
  return text.length;
}
