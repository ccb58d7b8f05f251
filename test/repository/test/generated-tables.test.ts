import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import * as requirements from "../../../scripts/docs/requirements.mjs";
import * as options from "../../../scripts/docs/sandbox-options.mjs";

it("docs/requirements.md is what the planner derives: run `node scripts/docs/requirements.mjs` after a build", async () => {
  expect(await readFile(requirements.page, "utf8")).toBe(requirements.requirementsPage());
});

it("docs/write-a-backend.md has every option of a sandbox: run `node scripts/docs/sandbox-options.mjs`", async () => {
  const text = await readFile(options.page, "utf8");
  expect(options.withOptions(text)).toBe(text);
});
