import { setImmediate as nextTurn } from "node:timers/promises";

/** Resolves when all that waited before have had their turn. */
let lastTurn = Promise.resolve();

/**
 * A turn of the event loop for the caller alone, in the order in which callers wait. For work of some milliseconds that many
 * connections may bring at once: all of it in the same turn would hold every other connection for seconds.
 */
export function turnForOne(): Promise<void> {
  lastTurn = lastTurn.then(() => nextTurn());
  return lastTurn;
}
