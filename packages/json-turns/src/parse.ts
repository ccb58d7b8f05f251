import { JsonCount, type JsonLimits, type JsonSize, messageJsonLimits } from "@ambit/core/contract";
import { loopTurnSize, loopTurns } from "@ambit/core/plugin";
import { pieceLength, piecesOfJson } from "./pieces-of-json.js";

/** Characters that are counted in one turn: some milliseconds. */
const countedPerTurn = 1_048_576;

/**
 * `requireJsonWithin` in turns of the event loop. When it resolves, the text may be parsed.
 *
 * @throws JsonTooLarge
 */
export async function countJsonInTurns(
  text: string,
  limits: JsonLimits = messageJsonLimits,
): Promise<JsonSize> {
  const { length } = text;
  await loopTurns.take(Math.min(length, countedPerTurn));
  const count = new JsonCount(text, limits);
  for (let until = countedPerTurn; until < length; until += countedPerTurn) {
    count.scan(until);
    await loopTurns.take(countedPerTurn);
  }
  count.scan(length);
  return count.size;
}

/** For a text of our own, which was bounded when it was written. */
const unlimited: JsonLimits = {
  maxLength: Number.POSITIVE_INFINITY,
  maxValues: Number.POSITIVE_INFINITY,
  maxDepth: Number.POSITIVE_INFINITY,
};

/** What was stored, parsed in turns of the event loop. @throws SyntaxError */
export async function storedJsonInTurns(text: string): Promise<unknown> {
  return (await parseJsonInTurns(text, unlimited)).value;
}

/**
 * `parseBoundedJson` in turns of the event loop: a long text is counted first, then parsed a piece at a time. What the
 * caller does with a long text's value has a turn of its own.
 *
 * @returns the value, and how much is in it
 * @throws JsonTooLarge before anything is parsed, or a SyntaxError
 */
export async function parseJsonInTurns(
  text: string,
  limits?: JsonLimits,
): Promise<{ readonly value: unknown } & JsonSize> {
  const size = await countJsonInTurns(text, limits);
  if (text.length <= loopTurnSize) return { value: JSON.parse(text), ...size };
  const pieces = piecesOfJson(text);
  for (;;) {
    await loopTurns.take(pieceLength);
    const { done, value } = pieces.next();
    if (done === true) return { value, ...size };
  }
}
