import { describe, expect, it, test } from "vitest";
import { KeptPieces, SmallPieces } from "../../src/plugin/index.js";

/** Bytes that differ, divided into pieces of these lengths. */
function divided(lengths: readonly number[]): readonly Uint8Array[] {
  let at = 0;
  return lengths.map((length) => Uint8Array.from({ length }, () => at++ % 251));
}

const repeated = (count: number, length: number) => Array.from({ length: count }, () => length);

const inputs: readonly (readonly [string, readonly number[]])[] = [
  ["nothing", []],
  ["an empty piece", [0]],
  ["one small piece", [5]],
  ["single bytes", repeated(100_000, 1)],
  ["pieces that are almost large", repeated(50, 2_047)],
  ["large pieces", [2_048, 70_000, 2_048]],
  ["small ones between large ones", [1, 2_048, 3, 3, 65_536, 0, 9]],
];

test.each(inputs)("%s: nothing is lost, changed or moved", (_what, lengths) => {
  const pieces = divided(lengths);
  const whole = Buffer.concat(pieces);
  const small = new SmallPieces();
  expect(Buffer.concat([...pieces.flatMap((piece) => small.push(piece)), ...small.end()])).toEqual(whole);
  expect(small.end()).toEqual([]);
  const kept = new KeptPieces();
  // What was taken isn't there any more.
  for (let time = 0; time < 2; time += 1) {
    for (const piece of pieces) kept.push(piece);
    expect(kept.take()).toEqual(whole);
  }
});

describe("small pieces", () => {
  it("become few", () => {
    const small = new SmallPieces();
    const given = divided(repeated(100_000, 1)).flatMap((piece) => small.push(piece));
    expect(given.length).toBeLessThan(100_000 / 4_000);
  });

  it("share no memory with what is kept: one may be the view of a larger buffer", () => {
    const large = new Uint8Array(65_536);
    const small = new SmallPieces();
    small.push(large.subarray(0, 1));
    const [kept] = small.end();
    expect(kept?.buffer).not.toBe(large.buffer);
    expect(kept?.buffer.byteLength).toBeLessThan(16);
  });

  it("don't change what was given before", () => {
    const small = new SmallPieces();
    small.push(Uint8Array.of(1));
    const [first] = small.end();
    small.push(Uint8Array.of(2));
    expect(first).toEqual(Uint8Array.of(1));
  });
});
