import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { page, withLimits } from "../../../scripts/docs/limits.mjs";

it("docs/reliability.md has every limit with its default: run `node scripts/docs/limits.mjs` after a build", async () => {
  const text = await readFile(page, "utf8");
  expect(withLimits(text)).toBe(text);
  // The control: there is a table, with the most important limits.
  for (const name of [
    "limits.concurrentRuns",
    "limits.memoryMb",
    "limits.callsPerRun",
    "server.bodyMs",
    "fixed: depth",
  ])
    expect(text).toContain(`\`${name}\``);
});
