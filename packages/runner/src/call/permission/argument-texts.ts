/** Length of a text, with white space normalised, that a prefix is compared with. */
export const maxPrefixLength = 256;
/** Values and keys of one call's arguments that are read. */
const maxValues = 5_000;
/** Levels of nesting that are read. */
const deepest = 64;

/** The beginnings of the texts in a call's arguments. */
export interface ArgumentTexts {
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
export const commandFields: ReadonlySet<string> = new Set(["command", "cmd", "script", "code"]);

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
