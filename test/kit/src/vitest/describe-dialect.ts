import type { Dialect } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { type DialectCase, dialectChecks, requireOwnSpelling } from "../dialect/checks.js";

/**
 * The requirements on a dialect, as a suite: it is pure, guesses nothing and drops nothing.
 *
 * @param cases requests of its callers; at least one with its translation.
 */
export function describeDialect(dialect: Dialect, cases: readonly DialectCase[]): void {
  describe(`dialect ${dialect.name}`, () => {
    it("leaves a request in the contract's spelling as it is", () => requireOwnSpelling(dialect));

    it("has a case with its translation", () => {
      expect(cases.filter(({ translated }) => translated !== undefined)).not.toEqual([]);
    });

    describe.each(cases)("$name", (one) => {
      for (const { title, check } of dialectChecks) it(title, () => check(dialect, one));
    });
  });
}
