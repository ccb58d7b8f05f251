import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { type EndingSignal, EndingSignals, sameRequestMs } from "../../src/cli/signals.js";

/** What a reader of the signals gets of those that come at these times, in milliseconds. */
async function receivedFrom(
  arrivals: readonly (readonly [EndingSignal, number])[],
): Promise<readonly string[]> {
  const source = new EventEmitter();
  let now = 0;
  const signals = new EndingSignals(source, () => now);
  const received: string[] = [];
  const listen = async (): Promise<void> => {
    received.push(await signals.next());
    await listen();
  };
  void listen();
  for (const [name, at] of arrivals) {
    now = at;
    source.emit(name);
  }
  await new Promise(setImmediate);
  return received;
}

test.each<[string, readonly (readonly [EndingSignal, number])[], readonly EndingSignal[]]>([
  ["one", [["SIGTERM", 0]], ["SIGTERM"]],
  [
    "two in the same moment",
    [
      ["SIGTERM", 5],
      ["SIGTERM", 5],
    ],
    ["SIGTERM"],
  ],
  [
    "two kinds shortly after each other",
    [
      ["SIGINT", 0],
      ["SIGTERM", sameRequestMs - 1],
    ],
    ["SIGINT"],
  ],
  [
    "a second one later",
    [
      ["SIGINT", 0],
      ["SIGTERM", sameRequestMs],
    ],
    ["SIGINT", "SIGTERM"],
  ],
  [
    "many, each shortly after the one before: the time runs from the one that counted",
    [
      ["SIGINT", 0],
      ["SIGINT", 200],
      ["SIGINT", 400],
    ],
    ["SIGINT", "SIGINT"],
  ],
])("of %s is heard what asks anew", async (_name, arrivals, received) => {
  expect(await receivedFrom(arrivals)).toEqual(received);
});
