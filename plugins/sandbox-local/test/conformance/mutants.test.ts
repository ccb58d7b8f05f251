import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeAuthority } from "@ambit/egress/credentials";
import {
  type AttackOutcome,
  bareControl,
  ChangingNames,
  CredentialHost,
  judgeCapability,
} from "@ambit/testkit";
import { requireProven } from "@ambit/testkit/vitest";
import { afterAll, describe, expect, it } from "vitest";
import { credentialMutants } from "./mutants/credential-mutants.js";
import { inboundMutants } from "./mutants/inbound-mutants.js";
import { makeMutant, removeMutants } from "./mutants/make-mutant.js";
import { mutants } from "./mutants/mutants.js";
import { probedMutants } from "./mutants/probed-mutants.js";

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

const control = bareControl();
const controlOutcomes = new Map<string, AttackOutcome>();

// That the same attacks fail against the sandbox as it is, conformance.test.ts shows.
describe("the local sandbox without one of its mechanisms", () => {
  for (const { name, patches, capability, caughtBy, lookup, needsRoot } of [
    ...mutants,
    ...credentialMutants,
    ...inboundMutants,
  ]) {
    it(`is caught: ${name}`, { timeout: 120_000 }, async (context) => {
      requireProven(context, original.backend, findings, capability);
      if (needsRoot && process.getuid?.() !== 0) context.skip("host: the runner isn't root");
      const mutant = await makeMutant(name.replaceAll(" ", "-"), patches, lookup ?? names.lookup);
      const options = {
        control,
        controlOutcomes,
        runnerModule: mutant.module,
        names,
        credentialHost,
        only: caughtBy,
      };
      // What the sandbox as it is was seen to hold: a mutant's own probe might notice first.
      const { attacks } = await judgeCapability(mutant.backend, findings, capability, options);
      const caught = attacks.map(({ id, verdict, guarded }) => ({ id, verdict, detail: guarded.detail }));
      expect(caught).toEqual(caughtBy.map((id) => expect.objectContaining({ id, verdict: "escaped" })));
    });
  }
});

// What the kit's attacks don't touch: another user of the host, a link made on the host, a deployer's settings.
describe("the probe of the local sandbox without one of its mechanisms", () => {
  for (const { name, patches, capability, reason, needsRoot } of probedMutants) {
    it(`notices: ${name}`, { timeout: 120_000 }, async (context) => {
      requireProven(context, original.backend, findings, capability);
      if (needsRoot && process.getuid?.() !== 0) context.skip("host: the runner isn't root");
      const { backend } = await makeMutant(name.replaceAll(" ", "-"), patches, names.lookup);
      const seen = await backend.probe(AbortSignal.timeout(60_000), [capability]);
      expect(seen.find((finding) => finding.capability === capability)).toMatchObject({
        proven: false,
        reason: expect.stringMatching(reason),
      });
    });
  }
});
