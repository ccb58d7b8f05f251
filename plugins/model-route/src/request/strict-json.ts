import { type JsonLimits, JsonTooLarge, requireJsonWithin } from "@ambit/core/plugin";

/** Why a body isn't taken. Completes "its body …". */
export class NotStrict extends Error {
  override readonly name = "NotStrict";
}

/**
 * The only value that a body can have, for every parser: one JSON document in UTF-8, without a byte order mark, in
 * whose objects no key is repeated. Pure.
 *
 * @throws NotStrict
 */
export function strictJson(bytes: Buffer, limits: JsonLimits): unknown {
  const text = decoded(bytes);
  try {
    const { members } = requireJsonWithin(text, limits);
    const value: unknown = JSON.parse(text);
    // `JSON.parse` keeps the last of two members with the same key.
    if (keysIn(value) !== members) throw new NotStrict("repeats a key within an object");
    return value;
  } catch (error) {
    if (error instanceof JsonTooLarge) throw new NotStrict(error.message, { cause: error });
    if (error instanceof SyntaxError) throw new NotStrict("isn't JSON", { cause: error });
    throw error;
  }
}

function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new NotStrict("isn't UTF-8", { cause });
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
