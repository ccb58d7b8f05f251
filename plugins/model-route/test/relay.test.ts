import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Replacements, StreamReplacer } from "@ambit/egress";
import { expect, it } from "vitest";
import { relay } from "../src/response/relay.js";

/** Answers at once, and pieces of each. Reading the values of one piece may take many milliseconds. */
const answers = 8;
const pieces = 4;

const answer = () => Readable.from(Array.from({ length: pieces }, (_, at) => Buffer.from(`piece ${at}`)));
const credential = { find: Buffer.from("sk-secret"), put: Buffer.from("*********") };

async function readWhole(stream: ReadableStream<Uint8Array>): Promise<void> {
  for await (const _piece of stream);
}

it("reads one piece in each turn of the event loop, however many answers arrive at once", async () => {
  let turn = 0;
  const isOver = new AbortController();
  const counting = (async () => {
    for (; !isOver.signal.aborted; turn += 1) await nextTurn();
  })();
  const readIn = new Map<number, number>();
  const ends: unknown[] = [];
  const relayed = Array.from({ length: answers }, () =>
    relay(answer(), {
      replacer: new StreamReplacer(new Replacements([credential])),
      signal: new AbortController().signal,
      onBytes: () => readIn.set(turn, (readIn.get(turn) ?? 0) + 1),
      onEnd: (how) => ends.push(how),
    }),
  );
  await Promise.all(relayed.map(readWhole));
  isOver.abort();
  await counting;
  expect(ends).toEqual(Array.from({ length: answers }, () => "whole"));
  expect([...readIn.values()]).toEqual(Array.from({ length: answers * pieces }, () => 1));
});
