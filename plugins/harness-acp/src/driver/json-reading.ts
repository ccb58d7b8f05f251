import { isJsonObject, type JsonObject } from "@ambit/core/plugin";

/** A string field of a record, or undefined. */
export function textAt(record: JsonObject, key: string): string | undefined {
  const value = record[key];
  return typeof value === "string" ? value : undefined;
}

export function numberAt(record: JsonObject, key: string): number | undefined {
  const value = record[key];
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** The value at the end of a path of keys. */
export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const key of path) {
    if (!isJsonObject(current)) return undefined;
    current = current[key];
  }
  return current;
}

/**
 * Control sequences of terminals. Unlike Node's `stripVTControlCharacters`, it doesn't search the whole rest of a text for the
 * end of each sequence that has none: 80 KB of `ESC ]` took 3 seconds.
 */
const controlSequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
  /\u001b\][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)|[\u001b\u009b][[\]()#;?]*(?:\d{1,4}(?:[;:]\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~]/g;

/** Characters that are read for each one that may remain. */
const readFactor = 8;

/** Untrusted text, fit for one line of an error: no control characters, at most `length` characters. */
export function shortLine(text: string, length = 500): string {
  const read = text.slice(0, length * readFactor);
  const line = read
    .replace(controlSequences, "")
    .replace(/\p{Cc}+/gu, " ")
    .trim();
  return line.length > length || read.length < text.length ? `${line.slice(0, length)}…` : line;
}
