import { expect, test } from "vitest";
import { comparable } from "../../../src/call/call.js";

test("a text is compared as what it means, unless it means very many values", () => {
  const many = `[${"{},".repeat(60_000)}0]`;
  expect(comparable({ few: "[1]", many })).toEqual({ few: [1], many });
});
