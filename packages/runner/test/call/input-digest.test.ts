import { describe, expect, test } from "vitest";
import { digestOf, prepareDigest } from "../../src/call/values/input-digest.js";

const rows = (length: number, at: (index: number) => unknown) =>
  Array.from({ length }, (_, index) => at(index));

describe("the digest of large arguments, read in turns", () => {
  test.each([
    ["a list", { all: rows(20_000, (at) => at) }],
    ["objects with absent values", { all: rows(9_000, (at) => ({ b: at, a: undefined, c: [null, "x"] })) }],
    [
      "one object of many keys",
      Object.fromEntries(rows(20_000, (at) => [`k${at}`, at]) as [string, number][]),
    ],
    ["lists within lists", [[rows(9_000, () => [])], {}, [[rows(9_000, () => ({}))]]]],
    ["a long text", { text: 'x"'.repeat(90_000), small: { list: [] } }],
    ["a list as its text", { list: JSON.stringify(rows(2_000, (at) => at)), all: rows(9_000, (at) => at) }],
  ])("is that of equal ones: %s", async (_what, input) => {
    const expected = digestOf(structuredClone(input));
    await prepareDigest(input);
    expect(digestOf(input)).toBe(expected);
  });

  test("doesn't depend on the order of keys", async () => {
    const all = rows(20_000, (at) => at);
    const one = { a: 1, all };
    const other = { all, a: 1 };
    await Promise.all([prepareDigest(one), prepareDigest(other)]);
    expect(digestOf(one)).toBe(digestOf(other));
    expect(digestOf(one)).not.toBe(digestOf({ a: 2, all }));
  });
});
