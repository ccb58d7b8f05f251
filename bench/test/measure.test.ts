import { describe, expect, it } from "vitest";
import { interleaved, median, percentile, rotating, short } from "../src/measure.js";

describe("rounds of several sides", () => {
  it("begin with another side each, and discard the warm-up", async () => {
    const order: string[] = [];
    const costs = await rotating(
      ["one", "two", "three"],
      async (side) => {
        order.push(side);
        return order.length;
      },
      { rounds: 2, warmUp: 1 },
    );
    expect(order.join(" ")).toBe("one two three two three one three one two");
    expect(Object.fromEntries(costs)).toEqual({ one: [6, 8], two: [4, 9], three: [5, 7] });
  });

  it("are summed up by percentiles", () => {
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect([50, 95, 99, 100].map((percent) => percentile(hundred, percent))).toEqual([50, 95, 99, 100]);
    expect(percentile([7], 95)).toBe(7);
    expect(percentile([], 95)).toBeNaN();
  });
});

describe("interleaved pairs", () => {
  it("runs the sides in alternating order, and discards the warm-up", async () => {
    const order: string[] = [];
    let ours = 0;
    const pairs = await interleaved(
      () => {
        order.push("ours");
        ours += 1;
        return ours * 10;
      },
      async () => {
        order.push("floor");
        return 5;
      },
      { pairs: 3, warmUp: 1 },
    );
    expect(order).toEqual(["floor", "ours", "ours", "floor", "floor", "ours", "ours", "floor"]);
    expect(pairs).toEqual({ subject: [20, 30, 40], floor: [5, 5, 5], ratios: [4, 6, 8] });
  });

  it("fails if a side fails", async () => {
    const broken = interleaved(
      () => 1,
      () => Promise.reject(new Error("no floor")),
      { pairs: 1 },
    );
    await expect(broken).rejects.toThrow("no floor");
  });
});

describe("median", () => {
  it.each([
    [[3], 3],
    [[9, 1, 5], 5],
    [[4, 1, 3, 2], 2.5],
  ])("of %j is %d", (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  it("of no values is NaN, so that it meets no goal", () => {
    expect(median([])).toBeNaN();
  });
});

it.each([
  [0.12345, "0.123"],
  [1.2345, "1.23"],
  [12.345, "12.3"],
  [123.45, "123"],
  [-7.25, "-7.25"],
  [1234567, "1,234,567"],
])("writes %d as %s", (value, expected) => {
  expect(short(value)).toBe(expected);
});
