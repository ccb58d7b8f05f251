import { readFileSync } from "node:fs";
import { attacks } from "@ambit/attacks";
import { expect, it } from "vitest";

const page = readFileSync(new URL("../../../docs/enforcement.md", import.meta.url), "utf8");

it("docs/enforcement.md has the result of every attack", () => {
  const titles = Object.values(attacks).flatMap((all) => all.map(({ title }) => title));
  expect(titles.length).toBeGreaterThan(100);
  expect(
    titles.filter((title) => !page.includes(`| ${title} |`)),
    "run: node scripts/docs/enforcement.mjs",
  ).toEqual([]);
});
