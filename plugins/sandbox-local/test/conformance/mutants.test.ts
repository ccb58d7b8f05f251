import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeAuthority } from "@ambit/egress/credentials";
import { bareControl, ChangingNames, CredentialHost, judgeCapability, type Outcome } from "@ambit/testkit";
import { afterAll, describe, expect, it } from "vitest";
import { credentialMutants } from "./mutants/credential-mutants.js";
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
const { credentialHost, authorityFile } = await CredentialHost.openIn(dataFolder, makeAuthority);
process.env.AMBIT_KIT_MUTANT_AUTHORITY = authorityFile;
afterAll(async () => {
  delete process.env.AMBIT_KIT_MUTANT_AUTHORITY;
  await credentialHost.close();
});
const original = await makeMutant("unchanged", [], names.lookup);
const findings = await original.backend.probe(AbortSignal.timeout(60_000));

/** What attacks came to against the sandbox as it is: several mutants are caught by the same. */
const knownHeld = new Map<string, readonly object[]>();
const control = bareControl();
const controlOutcomes = new Map<string, Outcome>();

describe("the local sandbox without one of its mechanisms", () => {
  for (const { name, patches, capability, caughtBy, lookup, needsRoot } of [
    ...mutants,
    ...credentialMutants,
  ]) {
    it(`is caught: ${name}`, { timeout: 120_000 }, async (context) => {
      const finding = findings.find((one) => one.capability === capability);
      if (finding?.proven === false) context.skip(`host: ${capability} isn't proven here: ${finding.reason}`);
      if (needsRoot && process.getuid?.() !== 0) context.skip("host: the runner isn't root");
      const judged = async (from: typeof original) => {
        const options = {
          control,
          controlOutcomes,
          runnerModule: from.module,
          names,
          credentialHost,
          only: caughtBy,
        };
        // What the sandbox as it is was seen to hold: a mutant's own probe might notice first.
        const { attacks } = await judgeCapability(from.backend, findings, capability, options);
        return attacks.map(({ id, verdict, guarded }) => ({ id, verdict, detail: guarded.detail }));
      };
      // With the mechanism the same attacks fail: it is its absence that lets them through.
      const key = caughtBy.join();
      const held =
        lookup === undefined ? (knownHeld.get(key) ?? (await judged(original))) : await judged(original);
      knownHeld.set(key, held);
      expect(held).toEqual(caughtBy.map((id) => expect.objectContaining({ id, verdict: "proven" })));
      const mutant = await makeMutant(name.replaceAll(" ", "-"), patches, lookup ?? names.lookup);
      const caught = await judged(mutant);
      expect(caught).toEqual(caughtBy.map((id) => expect.objectContaining({ id, verdict: "escaped" })));
    });
  }
});
