import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { Finding } from "@ambit/core/plugin";
import { requireProven } from "@ambit/testkit/vitest";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import makeBackend, { configOf, makeDataFolder } from "./backend.mjs";
import { type ProbeMutantRow, runProbeMutants } from "./mutation/run-probe-mutants.ts";

const dataFolder = makeDataFolder();
afterAll(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));
const table = readFileSync(new URL("../../../../docs/mutations.md", import.meta.url), "utf8");

/** What every author of a backend gets, on sandboxes whose mechanisms can be removed one by one. */
describe("the standard probe, on jails without one mechanism", () => {
  const backend = makeBackend(dataFolder);
  let findings: readonly Finding[];
  let rows: readonly ProbeMutantRow[];
  beforeAll(async () => {
    findings = await backend.probe(AbortSignal.timeout(60_000));
    rows = findings.every(({ proven, capability }) => proven || capability.startsWith("resources."))
      ? await runProbeMutants({ config: configOf(dataFolder), dataFolder }, Boolean(process.env.AMBIT_SOAK))
      : [];
  }, 400_000);
  const requireUnmodified = (context: TestContext) => {
    for (const { capability } of findings)
      if (!capability.startsWith("resources.")) requireProven(context, backend, findings, capability);
  };

  it("doesn't prove what the mechanism enforces", (context) => {
    requireUnmodified(context);
    expect(rows.length).toBeGreaterThan(15);
    expect(rows.filter(({ unproven }) => unproven.length === 0).map(({ name }) => name)).toEqual([]);
    // A jail that doesn't open shows nothing about the probe.
    expect(
      rows.filter(({ unproven }) => unproven.some(({ reason }) => reason.includes("can't be opened"))),
    ).toEqual([]);
  });

  it("is listed in docs/mutations.md", (context) => {
    requireUnmodified(context);
    const missing = rows.filter(({ name }) => !table.includes(`| ${name} |`)).map(({ name }) => name);
    expect(missing, "run: node scripts/docs/mutations.mjs").toEqual([]);
  });
});
