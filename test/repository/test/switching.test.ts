import { expect, it } from "vitest";
import { pages } from "../../../scripts/docs/switching.mjs";

it("docs/switching.md is current: node scripts/docs/switching.mjs", async () => {
  const { current, wanted } = await pages();
  expect(wanted).toBe(current);
});
