import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bareControl, ChangingNames, judgeCapability } from "@ambit/testkit";
import { afterAll, describe, expect, it } from "vitest";
import { makeMutant, removeMutants } from "./mutants/make-mutant.js";
import { mutants } from "./mutants/mutants.js";

const dataFolder = mkdtempSync(join(tmpdir(), "ambit-kit-mutants-"));
process.env.AMBIT_KIT_MUTANT_FOLDER = dataFolder;
afterAll(() => {
  delete process.env.AMBIT_KIT_MUTANT_FOLDER;
  removeMutants();
  rmSync(dataFolder, { recursive: true, force: true, maxRetries: 5 });
});

const names = new ChangingNames();
const original = await makeMutant("unchanged", [], names.lookup);
const findings = await original.backend.probe(AbortSignal.timeout(60_000));

describe("the local sandbox without one of its mechanisms", () => {
  for (const { name, patches, capability, caughtBy, lookup, needsRoot } of mutants) {
    it(`is caught: ${name}`, { timeout: 120_000 }, async (context) => {
      const finding = findings.find((one) => one.capability === capability);
      if (finding?.proven === false) context.skip(`host: ${capability} isn't proven here: ${finding.reason}`);
      if (needsRoot && process.getuid?.() !== 0) context.skip("host: the runner isn't root");
      const judged = async (from: typeof original) => {
        const options = { control: bareControl(), runnerModule: from.module, names, only: caughtBy };
        // What the sandbox as it is was seen to hold: a mutant's own probe might notice first.
        const { attacks } = await judgeCapability(from.backend, findings, capability, options);
        return attacks.map(({ id, verdict, guarded }) => ({ id, verdict, detail: guarded.detail }));
      };
      // With the mechanism the same attacks fail: it is its absence that lets them through.
      const held = await judged(original);
      expect(held).toEqual(caughtBy.map((id) => expect.objectContaining({ id, verdict: "proven" })));
      const mutant = await makeMutant(name.replaceAll(" ", "-"), patches, lookup ?? names.lookup);
      const caught = await judged(mutant);
      expect(caught).toEqual(caughtBy.map((id) => expect.objectContaining({ id, verdict: "escaped" })));
    });
  }
});
