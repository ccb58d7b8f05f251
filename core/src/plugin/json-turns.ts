import { JsonCount, type JsonLimits, type JsonSize, messageJsonLimits } from "../contract/index.js";
import { loopTurnSize, loopTurns } from "./loop-turns.js";

/** Characters that are counted in one turn: some milliseconds. */
const countedPerTurn = 1_048_576;

/**
 * `requireJsonWithin` in turns of the event loop, see {@link loopTurns}. When it resolves, the text may be parsed.
 *
 * @throws JsonTooLarge
 */
export async function countJsonInTurns(
  text: string,
  limits: JsonLimits = messageJsonLimits,
): Promise<JsonSize> {
  const { length } = text;
  await loopTurns.take(length);
  const count = new JsonCount(text, limits);
  for (let until = countedPerTurn; until < length; until += countedPerTurn) {
    count.scan(until);
    await loopTurns.take(countedPerTurn);
  }
  count.scan(length);
  if (length > loopTurnSize) await loopTurns.take(length);
  return count.size;
}

/**
 * `parseBoundedJson` in turns of the event loop: a long text is counted in some, and parsed in another.
 *
 * @returns the value, and how many values are in it
 * @throws JsonTooLarge before anything is parsed, or a SyntaxError
 */
export async function parseJsonInTurns(
  text: string,
  limits?: JsonLimits,
): Promise<{ readonly value: unknown; readonly values: number }> {
  const { values } = await countJsonInTurns(text, limits);
  const value: unknown = JSON.parse(text);
  return { value, values };
}
