import { rmSync } from "node:fs";
import { capabilities } from "@ambit/core/plugin";
import { attacks, canary, repetitions, startDecoys, tryUnguarded } from "@ambit/testkit";
import { requireProven } from "@ambit/testkit/vitest";
import { afterAll, describe, expect, it } from "vitest";
import { configSchema, LocalSandbox } from "../../src/index.js";
import { decoyList, standIns } from "../weakened/decoys-only.ts";
import { WeakenedSandboxes, withoutFor } from "../weakened/jails/index.ts";
import { makeDataFolder } from "./backend.mjs";

const dataFolder = makeDataFolder();
afterAll(() => rmSync(dataFolder, { recursive: true, force: true, maxRetries: 5 }));

const all = capabilities.flatMap((capability) => attacks[capability]);
const config = configSchema.parse({ dataFolder });
const backend = new LocalSandbox(config);
const findings = await backend.probe(AbortSignal.timeout(60_000));
const claims = findings.filter(({ proven }) => proven).map(({ capability }) => capability);

const decoys = await startDecoys();
// The content of the runner's own environment, which attacks on environments search for.
process.env[canary] = decoys.secret;
afterAll(async () => {
  delete process.env[canary];
  await decoys.close();
});

describe("jails of the local sandbox with mechanisms removed", () => {
  it("are defined for each attack", () => {
    expect(all.filter((attack) => withoutFor(attack).length === 0)).toEqual([]);
  });

  // That every attack works in a jail without what is named for it, the conformance suite shows.
  // The suite runs the race. Each half alone, which takes all of its launches, with AMBIT_SOAK=1.
  const isRun = ({ id }: { readonly id: string }) =>
    Boolean(process.env.AMBIT_SOAK) || id !== "filesystem.workspace-only/exchange-under-a-launch";
  const several = all.filter(isRun).flatMap((attack) => {
    const without = withoutFor(attack);
    return without === "bare" || without.length < 2
      ? []
      : without.map((kept) => ({ attack, id: attack.id, kept, without }));
  });
  it.for(several)(
    "need every removal that is named: the $kept alone stops $id",
    { timeout: repetitions({ short: 60_000, soak: 600_000 }) },
    async ({ attack, kept, without }, { skip, onTestFinished }) => {
      const { capability } = attack;
      requireProven({ skip }, backend, findings, capability);
      const weakened = new WeakenedSandboxes({ config, dataFolder });
      const rest = without.filter((mechanism) => mechanism !== kept);
      const untouched = await startDecoys();
      onTestFinished(() => untouched.close());
      const allButOne = {
        what: "a jail that lacks all but one",
        open: (_attack: unknown, spec: Parameters<typeof weakened.open>[0]) =>
          weakened.open(spec, rest, standIns(attack, untouched), decoyList(untouched)),
      };
      const place = { capability, claims, decoys: untouched, open: backend.open.bind(backend) };
      const outcome = await tryUnguarded(attack, allButOne, place);
      expect(outcome).toMatchObject({ result: "blocked" });
    },
  );
});
