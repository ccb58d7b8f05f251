import { isUtf8 } from "node:buffer";
import { type JsonLimits, JsonTooLarge, parseCountedJson } from "@ambit/core/plugin";

/** Why a body isn't taken. Completes "its body …". */
export class NotStrict extends Error {
  override readonly name = "NotStrict";
}

/**
 * The only value that a body can have, for every parser: one JSON document in UTF-8, without a byte order mark, in
 * whose objects no key is repeated.
 *
 * @throws NotStrict
 */
export function strictJson(bytes: Buffer, limits: JsonLimits): unknown {
  if (!isUtf8(bytes)) throw new NotStrict("isn't UTF-8");
  // A byte order mark stays, and isn't JSON.
  const text = bytes.toString("utf8");
  try {
    const { value, members } = parseCountedJson(text, limits);
    // `JSON.parse` keeps the last of two members with the same key.
    if (keysIn(value) !== members) throw new NotStrict("repeats a key within an object");
    return value;
  } catch (error) {
    if (error instanceof JsonTooLarge) throw new NotStrict(error.message, { cause: error });
    if (error instanceof SyntaxError) throw new NotStrict("isn't JSON", { cause: error });
    throw error;
  }
}

function keysIn(document: unknown): number {
  let keys = 0;
  const open: unknown[] = [document];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value !== "object" || value === null) continue;
    const inner: readonly unknown[] = Object.values(value);
    if (!Array.isArray(value)) keys += inner.length;
    for (const one of inner) if (typeof one === "object" && one !== null) open.push(one);
  }
  return keys;
}
