import { expect, it } from "vitest";
import { listed } from "../../src/outputs/listed.js";

/** Files with paths of 300 characters that count how often they are read. */
function filesOf(count: number) {
  const reads = { count: 0 };
  const files = Array.from({ length: count }, (_, at) => ({
    get path() {
      reads.count += 1;
      return `${(at * 7_919) % count}`.padStart(300, "x");
    },
    executable: false,
    included: true,
    at: 0,
    size: 1,
    sha256: "0".repeat(64),
  }));
  return { reads, collected: { files, deleted: [], omitted: [], omittedMore: 0 } };
}

it("more paths than a receipt lists are refused before they are sorted", () => {
  const count = 20_000;
  const { reads, collected } = filesOf(count);
  expect(() => listed(collected, undefined)).toThrow(/20000 paths, 11120000 characters/);
  expect(reads.count).toBeLessThan(2 * count);
});

it("as many as it lists are sorted by path", () => {
  const { reads, collected } = filesOf(1_000);
  const { files, complete } = listed(collected, undefined);
  expect(reads.count).toBeGreaterThan(2_000);
  const paths = files.map(({ path }) => path);
  expect([paths, complete]).toEqual([paths.toSorted(), true]);
});
