import { describe, expect, it } from "vitest";
import { piecesOfJson } from "../src/index.js";

/** The value, and the number of steps. */
function divided(text: string, maxLength?: number): { readonly value: unknown; readonly steps: number } {
  const pieces = piecesOfJson(text, maxLength);
  for (let steps = 1; ; steps += 1) {
    const { done, value } = pieces.next();
    if (done === true) return { value, steps };
  }
}

/** What is made of a text, with the order of keys. */
function outcome(parse: () => unknown): string {
  try {
    return JSON.stringify(parse());
  } catch (error) {
    if (error instanceof SyntaxError) return "it isn't JSON";
    throw error;
  }
}

function expectSame(text: string, maxLength: number): void {
  const expected = outcome(() => JSON.parse(text));
  const found = outcome(() => divided(text, maxLength).value);
  if (found !== expected) expect.fail(`in steps of ${maxLength}, ${text} is ${found} instead of ${expected}`);
}

/** Pseudo-random, the same in each run. */
function dice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

const scalars = [
  "0",
  "-1.5e3",
  "true",
  "null",
  '""',
  '"a"',
  '"\\n\\u00e9\\\\"',
  '"}],{["',
  '"\\ud83d\\ude00é"',
];
const keys = ['"a"', '"b"', '"__proto__"', '"constructor"', '"1"', '"a,b:{"', '"\\u0061"', '""'];
const spaces = ["", "", " ", "\n\t", "   "];

function randomJson(roll: (sides: number) => number, depth: number): string {
  const space = () => spaces[roll(spaces.length)] ?? "";
  const kind = depth === 0 ? 0 : roll(4);
  if (kind < 2) return `${space()}${scalars[roll(scalars.length)]}${space()}`;
  const items = Array.from({ length: roll(6) }, () => {
    const item = randomJson(roll, depth - 1);
    return kind === 2 ? item : `${space()}${keys[roll(keys.length)]}${space()}:${item}`;
  });
  const inner = items.length === 0 ? space() : items.join();
  return `${space()}${kind === 2 ? `[${inner}]` : `{${inner}}`}${space()}`;
}

const marks = [...'[]{},:"\\ 0u-e\n\u00a0'];

/** With a character too many, too few or exchanged. */
function damaged(text: string, roll: (sides: number) => number): string {
  const at = roll(text.length + 1);
  return text.slice(0, at) + (roll(3) === 0 ? "" : marks[roll(marks.length)]) + text.slice(at + roll(2));
}

describe("JSON that is parsed in steps", () => {
  it("is what JSON.parse makes of it, at every length of a step", () => {
    const roll = dice(23);
    for (let turn = 0; turn < 4_000; turn += 1) expectSame(randomJson(roll, 5), 1 + roll(24));
  });

  it("is refused where JSON.parse refuses it", () => {
    const roll = dice(42);
    for (let turn = 0; turn < 12_000; turn += 1) {
      const text = damaged(randomJson(roll, 4), roll);
      expectSame(roll(3) === 0 ? damaged(text, roll) : text, 1 + roll(24));
    }
  });

  it.each([
    "",
    " ",
    "[",
    "]",
    "{",
    "[1,]",
    "[,1]",
    "[1,,2]",
    '{"a":1,}',
    "{,}",
    "[1}",
    "[[1],]",
    "1 2",
    '"a',
    '{"a"}',
    '["a":1]',
    "[01]",
  ])("is refused: %s", (text) => {
    for (let maxLength = 1; maxLength < 6; maxLength += 1) expectSame(text, maxLength);
  });

  it("takes a number of steps that grows with it, whatever is long", () => {
    const length = 1_000_000;
    const texts = {
      text: JSON.stringify("x".repeat(length)),
      escapes: `"${"\\n".repeat(length / 2)}"`,
      key: `{"${"k".repeat(length)}":1}`,
      values: `[${"{},".repeat(length / 3)}{}]`,
      keys: JSON.stringify(
        Object.fromEntries(Array.from({ length: length / 12 }, (_, at) => [`k${at}`, at])),
      ),
      nested: `[${"[[],".repeat(200)}${"1,".repeat(length / 2)}1${"]".repeat(201)}`,
      deepLast: `${'{"a":['.repeat(100)}${"1,".repeat(length / 2)}1${"]}".repeat(100)}`,
    };
    for (const [what, text] of Object.entries(texts)) {
      const { value, steps } = divided(text);
      expect(value, what).toEqual(JSON.parse(text));
      expect(steps, what).toBeGreaterThan(text.length / 32_768 / 2);
      expect(steps, what).toBeLessThan(text.length / 32_768 + 500);
    }
  });
});
