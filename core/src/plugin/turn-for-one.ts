import { setImmediate as nextTurn } from "node:timers/promises";

/** Resolves when all that waited before have had their turn. */
let lastTurn = Promise.resolve();

/** Bytes or characters from which reading a text takes a turn of its own. A smaller one takes less than a millisecond. */
const largeText = 65_536;

/**
 * A turn of the event loop for the caller alone, in the order in which callers wait. For work of some milliseconds that many
 * connections may bring at once: all of it in the same turn would hold every other connection for seconds.
 */
export function turnForOne(): Promise<void> {
  lastTurn = lastTurn.then(() => nextTurn());
  return lastTurn;
}

/** The same before a text of this length is parsed. Undefined for a short one, which needs no turn of its own. */
export function turnForText(length: number): Promise<void> | undefined {
  return length > largeText ? turnForOne() : undefined;
}
