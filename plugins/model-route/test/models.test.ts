import { describe, expect, it } from "vitest";
import { configSchema } from "../src/config.js";
import { costOf, matchesPattern, priceOf } from "../src/models.js";

describe("models and prices", () => {
  it.each([
    ["claude-*", "claude-x", true],
    ["claude-*-mini", "claude-5-mini", true],
    ["claude-*-mini", "claude-mini", false],
    ["*", "", true],
    ["a*b*c", "a-b-b-c", true],
    ["a*b*c", "a-c-b", false],
    ["gpt-5.5", "gpt-5x5", false],
    ["gpt-5", "gpt-5.5", false],
  ])("%s matches %s: %s", (pattern, name, isFit) => {
    expect(matchesPattern(pattern, name)).toBe(isFit);
  });

  it("the longest matching pattern sets the price", () => {
    const price = (input: number) => ({ input, output: 0 });
    const prices = { "*": price(1), "claude-*": price(2), "claude-haiku-*": price(3), exact: price(4) };
    const inputs = ["other", "claude-opus", "claude-haiku-4", "exact"].map(
      (name) => priceOf(name, prices)?.input,
    );
    expect(inputs).toEqual([1, 2, 3, 4]);
    expect(priceOf("x", { y: price(1) })).toBeUndefined();
  });

  it("tokens read from and written to the cache have separate prices", () => {
    const counted = {
      input: 1_000_000,
      cached: 400_000,
      cacheWritten: 100_000,
      output: 200_000,
      reasoning: 0,
    };
    expect(costOf(counted, { input: 3, output: 15, cached: 0.3, cacheWrite: 3.75 })).toBeCloseTo(
      1.5 + 0.12 + 0.375 + 3,
    );
    expect(costOf(counted, { input: 3, output: 15 })).toBeCloseTo(6);
  });

  it("no price is built in", () => {
    expect(configSchema.parse({}).prices).toEqual({});
  });
});
