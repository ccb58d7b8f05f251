import { isUtf8 } from "node:buffer";
import { type JsonLimits, JsonTooLarge, loopTurns } from "@ambit/core/plugin";
import { parseJsonInTurns } from "@ambit/json-turns";

/** Why a body isn't taken. Completes "its body …". */
export class NotStrict extends Error {
  override readonly name = "NotStrict";
}

/**
 * The only value that a body can have, for every parser: one JSON document in UTF-8, without a byte order mark, in
 * whose objects no key is repeated. Read in turns of the event loop.
 *
 * @throws NotStrict
 */
export async function strictJson(bytes: Buffer, limits: JsonLimits): Promise<unknown> {
  if (!isUtf8(bytes)) throw new NotStrict("isn't UTF-8");
  await loopTurns.take(bytes.length);
  // A byte order mark stays, and isn't JSON.
  const text = bytes.toString("utf8");
  try {
    const { value, members } = await parseJsonInTurns(text, limits);
    // `JSON.parse` keeps the last of two members with the same key.
    if ((await keysIn(value)) !== members) throw new NotStrict("repeats a key within an object");
    return value;
  } catch (error) {
    if (error instanceof JsonTooLarge) throw new NotStrict(error.message, { cause: error });
    if (error instanceof SyntaxError) throw new NotStrict("isn't JSON", { cause: error });
    throw error;
  }
}

/** Values that are looked at in one turn, and what one costs, in the characters of {@link loopTurns}. */
const keysPerTurn = 8_192;
const costOfOne = 4;

async function keysIn(document: unknown): Promise<number> {
  let keys = 0;
  let untilTurn = keysPerTurn;
  const open: unknown[] = [document];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value !== "object" || value === null) continue;
    const inner: readonly unknown[] = Object.values(value);
    if (!Array.isArray(value)) keys += inner.length;
    for (const one of inner) if (typeof one === "object" && one !== null) open.push(one);
    untilTurn -= 1 + inner.length;
    if (untilTurn > 0) continue;
    untilTurn = keysPerTurn;
    await loopTurns.take(keysPerTurn * costOfOne);
  }
  return keys;
}
