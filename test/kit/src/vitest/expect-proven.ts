import type { Actor } from "@ambit/core/plugin";
import { expect, type TestContext } from "vitest";
import { probeWithin } from "../stage/kit-scope.js";

const probeMs = 60_000;

/** Fails for what the probe finds beyond the claims, or leaves out of them; skips, with the reason, for what it can't prove here. */
export async function expectProven(actor: Actor<never>, context: TestContext): Promise<void> {
  const findings = await probeWithin(actor, probeMs);
  const found = [...new Set(findings.map(({ capability }) => capability))];
  expect(found.sort(), "what the probe says something of is what is claimed").toEqual(
    [...actor.claims].sort(),
  );
  const unproven = findings.flatMap((one) => (one.proven ? [] : [`${one.capability}: ${one.reason}`]));
  if (unproven.length > 0) {
    context.skip(`host: the probe of ${actor.name} doesn't prove what it claims: ${unproven.join("; ")}`);
  }
}
