import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { limits, measure, outdated, overLimit, page, withSizes } from "../../../scripts/docs/sizes.mjs";

const sizes = measure();

describe("sizes", () => {
  it("stay within their limits", () => {
    expect(overLimit(sizes)).toEqual([]);
  });

  it("beyond a limit are reported", () => {
    const grown = { ...sizes, executor: { ...sizes.executor, lines: limits.smallestExecutor + 1 } };
    const packages = sizes.packages.map((one) =>
      one.name === "core" ? { ...one, lines: limits.core + 1 } : one,
    );
    expect(overLimit({ ...grown, packages })).toEqual([
      expect.stringContaining("core/src has"),
      expect.stringContaining("smallest executor"),
    ]);
  });

  it("are about those of the page: run `node scripts/docs/sizes.mjs`", () => {
    expect(outdated(readFileSync(page, "utf8"), sizes)).toEqual([]);
  });

  it("of a page that states others are reported", () => {
    const text = withSizes(readFileSync(page, "utf8"), sizes);
    expect(outdated(text.replace(/^\| `core` \| \d+/m, "| `core` | 1"), sizes)).toEqual([
      expect.stringContaining("the page says 1"),
    ]);
    expect(outdated(text.replace(/^\| `server`.*$/m, ""), sizes)).toHaveLength(1);
  });
});
