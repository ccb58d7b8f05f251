import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { contractReadme } from "../../scripts/generate-contract-docs.mjs";
import { requestFields } from "../../scripts/request-fields.mjs";
import { promises, runRequestSchema } from "../../src/contract/index.js";

test("the README is the table: run `node core/scripts/generate-contract-docs.mjs` after a build", () => {
  const readme = readFileSync(new URL("../../src/contract/README.md", import.meta.url), "utf8");
  expect(readme).toBe(contractReadme(requestFields(runRequestSchema), promises));
});
