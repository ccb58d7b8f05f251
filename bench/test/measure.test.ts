import { describe, expect, it } from "vitest";
import { interleaved, median, short } from "../src/measure.js";

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
