import { describe, expect, it } from "vitest";
import { attacks, type Mechanism, mechanismNames, mechanisms, mechanismsAgainst } from "../src/index.js";
import { limitTrials, probedBy, standardTrials } from "../src/standard-probe/index.js";
import { cpuTrial } from "../src/standard-probe/trials/resources.js";
import { systemCallsTrial } from "../src/standard-probe/trials/system-calls.js";

const all = Object.values(attacks).flat();
const trials = {
  ...standardTrials,
  limits: { shows: limitTrials.flatMap(({ shows }) => shows) },
  systemCalls: systemCallsTrial(),
  cpu: cpuTrial,
};
/** Their trials show them of one capability, with which others fall. */
const shownElsewhere: readonly Mechanism[] = ["system call filter", "no new privileges"];

describe.each(mechanismNames)("the mechanism %s", (mechanism) => {
  it("stops an attack of the catalogue on what it enforces", () => {
    const stopped = all.filter((attack) => mechanismsAgainst(attack).includes(mechanism));
    expect(stopped.map(({ id }) => id)).not.toEqual([]);
    const attacked = stopped.map(({ capability }) => capability);
    for (const capability of mechanisms[mechanism]) expect(attacked).toContain(capability);
  });

  it("is tried by a trial of the probe for it, or there is a reason", () => {
    const names = probedBy[mechanism];
    if (typeof names === "string") return expect(names).not.toBe("");
    const shown = names.flatMap((name) => [...trials[name].shows]);
    expect(shown).not.toEqual([]);
    if (shownElsewhere.includes(mechanism)) return;
    for (const capability of mechanisms[mechanism]) expect(shown).toContain(capability);
  });
});
