import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { capabilities } from "../../src/contract/index.js";
import { domainIn, mayRun, requiredIn, uncovered } from "./oracle.js";
import { connectionNames, kindNames, planOf, type Row, type Situation, situations } from "./situation.js";

describe("for any request and any actors", () => {
  test("the plan is accepted if and only if no actor has a gap", () => {
    let accepted = 0;
    fc.assert(
      fc.property(situations, (one) => {
        const plan = planOf(one);
        if (plan.accepted) accepted += 1;
        expect(plan.accepted).toBe(mayRun(one));
      }),
      { numRuns: 3_000 },
    );
    // The control: the property is about accepted plans, and there were many.
    expect(accepted).toBeGreaterThan(100);
  });

  test("an accepted plan has no gaps under strict, and lists them under best_effort", () => {
    fc.assert(
      fc.property(situations, (one) => {
        const plan = planOf(one);
        if (!plan.accepted) {
          expect(plan.gaps.length + plan.issues.length).toBeGreaterThan(0);
          return;
        }
        const required = requiredIn(one);
        if (one.enforcement === "strict") {
          expect(plan.outside).toEqual([]);
          return;
        }
        const used = [
          ...one.tools.map(({ kind }, index) => ({
            name: kind,
            subject: `tool-${index}`,
            each: one.executors[kindNames.indexOf(kind)],
          })),
          ...one.servers.map(({ type }, index) => ({
            name: type,
            subject: `server-${index}`,
            each: one.sources[connectionNames.indexOf(type)],
          })),
        ];
        for (const { name, subject, each } of used) {
          if (each?.site !== "runner") continue;
          for (const capability of uncovered(each, required)) {
            const listed = plan.outside.filter((gap) => gap.actor === name && gap.subject === subject);
            expect(listed.map((gap) => domainIn(gap.capability))).toContain(domainIn(capability));
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test("a further proven claim never turns an accepted plan into a refused one", () => {
    const place = fc.constantFrom("sandboxes", "executors", "sources", "delivery", "harness");
    fc.assert(
      fc.property(
        situations,
        place,
        fc.nat(2),
        fc.constantFrom(...capabilities),
        (one, where, index, capability) => {
          const add = (each: Row): Row => ({
            ...each,
            claims: [...new Set([...each.claims, capability])],
            proven: [...new Set([...each.proven, capability])],
          });
          const more: Situation =
            where === "delivery" || where === "harness"
              ? { ...one, [where]: add(one[where]) }
              : { ...one, [where]: one[where].map((each, at) => (at === index ? add(each) : each)) };
          if (planOf(one).accepted) expect(planOf(more).accepted).toBe(true);
        },
      ),
      { numRuns: 3_000 },
    );
  });

  test("a further requirement never turns a refused plan into an accepted one", () => {
    const additions: ((one: Situation) => Situation)[] = [
      (one) => (one.network === "on" ? { ...one, network: "off" } : one),
      (one) => (one.network === "on" ? { ...one, network: "names" } : one),
      (one) => (one.network === "names" || one.network === "ranges" ? { ...one, network: "both" } : one),
      (one) => (one.filesystem === "on" ? { ...one, filesystem: "readonly" } : one),
      (one) => ({ ...one, resources: [...new Set([...one.resources, "memoryMb" as const])] }),
      (one) => ({ ...one, secrets: "hidden" }),
      (one) => ({ ...one, tools: one.tools.map((tool) => ({ ...tool, env: true })) }),
      (one) => ({ ...one, servers: one.servers.map((server) => ({ ...server, env: true })) }),
      (one) => ({ ...one, enforcement: "strict" }),
    ];
    fc.assert(
      fc.property(situations, fc.constantFrom(...additions), (one, add) => {
        if (!planOf(one).accepted) expect(planOf(add(one)).accepted).toBe(false);
      }),
      { numRuns: 3_000 },
    );
  });

  test("the plan is a pure function of its input", () => {
    fc.assert(
      fc.property(situations, (one) => {
        expect(JSON.stringify(planOf(one))).toBe(JSON.stringify(planOf(one)));
      }),
      { numRuns: 200 },
    );
  });
});
