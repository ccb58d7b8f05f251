import { describe, expect, it } from "vitest";
import { age, duration } from "../../../src/cli/display/layout.js";
import { idsMeant, shortId } from "../../../src/cli/display/short-id.js";

const uuid = "bc9269d7-3c77-441c-85ea-56091ee3cb05";
const near = "bc9269d7-3c78-441c-85ea-56091ee3cb05";
const turn = "ask_AAAAAAAAAAAAAAAAAAAAAA";
const question = `${turn}W33m3RzXEOnBBBBBBBBBBBBB`;
const other = `${turn}9xPmTTTTEOnBBBBBBBBBBBBB`;

describe("a short id", () => {
  it.each([
    ["eight characters", uuid, [uuid], "bc9269d7"],
    ["as many as tell it from another", uuid, [uuid, near], "bc9269d7-3c77"],
    ["what tells it from others of its turn", question, [question, other], "ask_W33m3RzX"],
    ["a caller's own, whole", "nightly-2026-11-29", ["nightly-2026-11-29"], "nightly-2026-11-29"],
  ])("is %s", (_, id, all, short) => {
    expect(shortId(id, all)).toBe(short);
    expect(idsMeant(short, all)).toEqual([id]);
  });

  it("may mean several, unless it is one of them", () => {
    expect(idsMeant("bc92", [uuid, near])).toEqual([uuid, near]);
    expect(idsMeant("a", ["a", "ab"])).toEqual(["a"]);
    expect(idsMeant("W33m", [question, other])).toEqual([question]);
    expect(idsMeant(turn, [question, other])).toEqual([question, other]);
  });
});

it.each([
  [420, "0.42 s", "now"],
  [12_300, "12 s", "12 s ago"],
  [200_000, "3 min", "3 min ago"],
  [90_000_000, "1 d", "1 d ago"],
])("%i ms are %s, and were %s", (ms, length, ago) => {
  expect([duration(ms), age(ms)]).toEqual([length, ago]);
});
