import { stripVTControlCharacters } from "node:util";

export type JsonRecord = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A string field of a record, or undefined. */
export function textAt(record: JsonRecord, key: string): string | undefined {
  const value = record[key];
  return typeof value === "string" ? value : undefined;
}

export function numberAt(record: JsonRecord, key: string): number | undefined {
  const value = record[key];
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** The value at the end of a path of keys. */
export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const key of path) {
    if (!isRecord(current)) return undefined;
    current = current[key];
  }
  return current;
}

/** Untrusted text, fit for one line of an error: no control characters, at most `length` characters. */
export function shortLine(text: string, length = 500): string {
  const line = stripVTControlCharacters(text)
    .replace(/\p{Cc}+/gu, " ")
    .trim();
  return line.length > length ? `${line.slice(0, length)}…` : line;
}
