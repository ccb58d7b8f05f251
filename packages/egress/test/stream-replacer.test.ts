import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Replacement, Replacements, replacementsFor, StreamReplacer } from "../src/replacements.js";

const value = "s3cr3t/of+the~host";
const standIn = "placeholder-of-the-run-0123456789";

function pass(chunks: readonly Buffer[]): Buffer {
  const replacer = new StreamReplacer(new Replacements(replacementsFor(value, standIn)));
  return Buffer.concat([...chunks.map((chunk) => replacer.push(chunk)), replacer.end()]);
}

describe("a value in a stream", () => {
  it("is replaced for any chunking, and nothing else changes", () => {
    const text = Buffer.from(`before ${value} between ${value}${value} after s3cr3t`);
    const wanted = text.toString().replaceAll(value, standIn.slice(0, value.length));
    fc.assert(
      fc.property(fc.array(fc.nat(text.length)), (cuts) => {
        const ends = [0, ...cuts.sort((one, other) => one - other), text.length];
        const chunks = ends.slice(1).map((end, index) => text.subarray(ends[index], end));
        expect(pass(chunks).toString()).toBe(wanted);
      }),
    );
  });

  it.each([
    ["percent-encoded", encodeURIComponent(value)],
    ["in base64, alone", Buffer.from(value).toString("base64")],
    ["in base64, as a password", Buffer.from(`user:${value}`).toString("base64")],
    ["in base64, one further", Buffer.from(`users:${value}, and more`).toString("base64")],
    ["in base64, two further", Buffer.from(`user12:${value}`).toString("base64")],
    ["in base64url", Buffer.from(`??>${value}??>`).toString("base64url")],
  ])("is replaced %s", (_what, text) => {
    const passed = pass([Buffer.from(text)]);
    expect(passed.length).toBe(text.length);
    const shown = `${passed} ${Buffer.from(passed.toString(), "base64")} ${decodeURIComponent(passed.toString())}`;
    // Only bits of the first and last characters remain next to it.
    expect(shown).not.toContain(value.slice(2, -2));
  });

  it("delays nothing else: what can't be its beginning is passed on at once", () => {
    const replacer = new StreamReplacer(new Replacements(replacementsFor(value, standIn)));
    expect(replacer.push(Buffer.from("data: event\n\n")).toString()).toBe("data: event\n\n");
    expect(replacer.push(Buffer.from("ends with s3cr")).toString()).toBe("ends with ");
    expect(replacer.push(Buffer.from("ewed")).toString()).toBe("s3crewed");
  });

  it("is found together with others as if searched alone", () => {
    // Few letters, so that sequences overlap, begin alike and end a chunk half way.
    const text = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(
        fc.array(text, { maxLength: 4 }),
        fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c") })),
        (finds, chunks) => {
          const list = finds.map((find) => ({
            find: Buffer.from(find),
            put: Buffer.alloc(find.length, "*"),
          }));
          const replacer = new StreamReplacer(new Replacements(list));
          const passed = [...chunks.map((chunk) => replacer.push(Buffer.from(chunk))), replacer.end()];
          expect(Buffer.concat(passed).toString()).toBe(withoutAny(chunks.join(""), list));
        },
      ),
      { numRuns: 500 },
    );
  });

  it("leaves no part of two values that overlap", () => {
    const list = ["abcdef", "defghi"].flatMap((each) => replacementsFor(each, "_"));
    const replacer = new StreamReplacer(new Replacements(list));
    expect(`${replacer.push(Buffer.from("x abcdef"))}${replacer.push(Buffer.from("ghi y"))}`).toBe(
      "x _________ y",
    );
  });

  it("takes no longer to find if values are chosen to be alike, and the text to be nearly them", () => {
    // A search that begins anew at each byte compares 10^11 of them.
    const values = Array.from({ length: 8 }, (_, index) => `${"a".repeat(4_000 + index)}b`);
    const list = values.flatMap((each) => replacementsFor(each, standIn));
    const replacer = new StreamReplacer(new Replacements(list));
    const chunk = Buffer.alloc(65_536, "a");
    let length = 0;
    for (let count = 0; count < 512; count += 1) length += replacer.push(chunk).length;
    length += replacer.push(Buffer.from("b")).length + replacer.end().length;
    expect(length).toBe(512 * chunk.length + 1);
  });

  it("keeps its length, or isn't replaced", () => {
    const [find, put] = [Buffer.from("long"), Buffer.from("short")];
    expect(() => new Replacements([{ find, put }])).toThrow(RangeError);
    expect(() => new Replacements([{ find: Buffer.from("x"), put: Buffer.from("y") }])).toThrow(RangeError);
  });
});

/** Every character of every occurrence, also of those that overlap: what the one pass is held against. */
function withoutAny(text: string, list: readonly Replacement[]): string {
  const characters = [...text];
  for (const { find } of list) {
    for (let at = text.indexOf(String(find)); at !== -1; at = text.indexOf(String(find), at + 1)) {
      characters.fill("*", at, at + find.length);
    }
  }
  return characters.join("");
}
