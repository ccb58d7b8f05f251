import type { Actor } from "@ambit/core/plugin";
import { expect, type TestContext } from "vitest";
import { probeWithin } from "../stage/kit-scope.js";
import { skip } from "./skip.js";

const probeMs = 60_000;

/** Fails if the findings don't match the claims; skips, with the reason, for claims that can't be proven here. */
export async function expectProven(actor: Actor<never>, context: TestContext): Promise<void> {
  const findings = await probeWithin(actor, probeMs);
  const found = [...new Set(findings.map(({ capability }) => capability))];
  expect(
    found.sort(),
    "probe() must return a finding for each of the actor's claims, and for no other",
  ).toEqual([...actor.claims].sort());
  const unproven = findings.flatMap((one) => (one.proven ? [] : [`${one.capability}: ${one.reason}`]));
  if (unproven.length > 0) {
    skip(context, `the probe of ${actor.name} doesn't prove its claims: ${unproven.join("; ")}`);
  }
}
