import "reflect-metadata";
import { expect, test } from "vitest";
import { maxWarnings, Warnings } from "../../src/events/run-events.js";

test("the same warning appears once", () => {
  const warnings = new Warnings([{ path: "a", message: "has no effect" }]);
  warnings.add({ path: "a", message: "has no effect" });
  warnings.add({ message: "has no effect" });
  expect(warnings.list).toEqual([{ path: "a", message: "has no effect" }, { message: "has no effect" }]);
});

test("without warnings there is no list", () => {
  expect(new Warnings().list).toBeUndefined();
});

test("the number of warnings in a result is limited", () => {
  const warnings = new Warnings();
  for (let index = 0; index < maxWarnings * 2; index += 1) warnings.add({ message: `number ${index}` });
  expect(warnings.list).toHaveLength(maxWarnings);
});
