import { rmSync } from "node:fs";
import { capabilities } from "@ambit/core/plugin";
import { attacks, bareControl, runAttacks, startDecoys, tryUnguarded } from "@ambit/testkit";
import { afterAll, describe, expect, it } from "vitest";
import { configSchema, LocalSandbox } from "../../src/index.js";
import { control as controlOf } from "../../src/testing/control.js";
import { decoyList, standIns } from "../../src/testing/decoys-only.js";
import { WeakenedSandboxes } from "../../src/testing/weakened/index.js";
import { namedAttacks, withoutFor } from "../../src/testing/without.js";
import { makeDataFolder } from "./backend.mjs";

const dataFolder = makeDataFolder();
afterAll(() => rmSync(dataFolder, { recursive: true, force: true, maxRetries: 5 }));

const all = capabilities.flatMap((capability) => attacks[capability]);
const backend = new LocalSandbox(configSchema.parse({ dataFolder }));
const findings = await backend.probe(AbortSignal.timeout(60_000));
const isProven = (capability: string) =>
  findings.some((finding) => finding.capability === capability && finding.proven);

describe("jails of the local sandbox with mechanisms taken out", () => {
  it("are named for attacks that there are", () => {
    const ids = new Set<string>(all.map(({ id }) => id));
    expect(namedAttacks.filter((id) => !ids.has(id))).toEqual([]);
  });

  it("let every attack work that needs no rights of its own, and the whole jail lets none", {
    timeout: 300_000,
  }, async () => {
    const { capabilities: reports } = await runAttacks(backend, {
      control: controlOf(backend) ?? bareControl(),
    });
    for (const { capability, assurance, attacks: rows } of reports) {
      expect([capability, assurance]).toEqual([capability, isProven(capability) ? "proven" : "refused"]);
      const plain = new Set<string>(
        attacks[capability].filter(({ needs }) => needs === undefined).map(({ id }) => id),
      );
      const others = rows.filter(({ id, verdict }) => plain.has(id) && verdict !== "proven");
      expect(others.filter(({ verdict }) => verdict !== "impossible")).toEqual([]);
      for (const { without } of rows) expect(without).not.toBe("");
    }
  });

  const several = all.flatMap((attack) => {
    const without = withoutFor(attack);
    return without === "bare" || without.length < 2
      ? []
      : without.map((kept) => ({ attack, id: attack.id, kept, without }));
  });
  it.for(several)(
    "must lack all that is named: $id is stopped by the $kept alone",
    { timeout: 60_000 },
    async ({ attack, kept, without }, context) => {
      const { capability } = attack;
      if (!isProven(capability)) context.skip(`host: ${capability} isn't proven here`);
      const weakened = WeakenedSandboxes.beside(backend);
      if (weakened === undefined) throw new Error("the local sandbox has no weakened one beside it");
      const decoys = await startDecoys();
      try {
        const rest = without.filter((mechanism) => mechanism !== kept);
        const control = {
          what: "a jail that lacks all but one",
          open: (_attack: unknown, spec: Parameters<typeof weakened.open>[0]) =>
            weakened.open(spec, rest, standIns(attack, decoys), decoyList(decoys)),
        };
        const place = { capability, claims: backend.claims, decoys, open: backend.open.bind(backend) };
        const outcome = await tryUnguarded(attack, control, place);
        expect(outcome).toMatchObject({ result: "blocked" });
      } finally {
        await decoys.close();
      }
    },
  );
});
