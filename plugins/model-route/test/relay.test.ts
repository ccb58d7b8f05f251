import { Readable } from "node:stream";
import { Replacements, StreamReplacer } from "@ambit/egress";
import { stepsByTurn } from "@ambit/fakes/turns";
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
  const ends: unknown[] = [];
  const reads = await stepsByTurn((step) => {
    const relayed = Array.from({ length: answers }, () =>
      relay(answer(), {
        replacer: new StreamReplacer(new Replacements([credential])),
        signal: new AbortController().signal,
        onBytes: step,
        onEnd: (how) => ends.push(how),
      }),
    );
    return Promise.all(relayed.map(readWhole));
  });
  expect(ends).toEqual(Array.from({ length: answers }, () => "whole"));
  expect(reads).toEqual(Array.from({ length: answers * pieces }, () => 1));
});
