import { callPure, pluginReturns } from "@ambit/core";
import type { ToolExecutor, ToolOutcome } from "@ambit/core/plugin";
import { afterAll, describe, expect, it } from "vitest";
import { boundaryOf, executeCase, useOf } from "../executor/execute.js";
import { claimsWithoutAttack, type ExecutorAttack, tryExecutorAttack } from "../executor/executor-attack.js";
import type { ExecutorCase, ExecutorWorld } from "../executor/executor-case.js";
import { deepFrozen } from "../executor/frozen.js";
import { type OpenWorld, openWorld } from "../executor/world.js";
import { expectProven } from "./expect-proven.js";
import { showSkips } from "./skip.js";

const callMs = 60_000;
const atOnce = 8;
const needsControl =
  "one that is strict without a boundary too needs a control, the option unguarded: () => an executor without what enforces it";

export interface ExecutorSuiteOptions {
  /**
   * The control, in which an attack must work and a request arrive: the executor without what enforces its claims. Needed for one
   * that is strict whatever the boundary is. Default: the executor itself, without a boundary.
   */
  readonly unguarded?: (world: ExecutorWorld) => ToolExecutor;
}

/**
 * The requirements on a tool executor, as a suite.
 *
 * @param makeExecutor is called once, before the tests, with the world that its calls act on.
 * @param makeCases the author's own cases: at least one that completes or is parked, preferably also one that fails and
 * one that never ends by itself (`status: "never"`), to test its abort.
 * @param makeAttacks one for each claim of an executor on the runner, except those of the network.
 */
export function describeToolExecutor(
  makeExecutor: (world: ExecutorWorld) => ToolExecutor,
  makeCases: (world: ExecutorWorld) => readonly ExecutorCase[],
  makeAttacks: (world: ExecutorWorld) => readonly ExecutorAttack[] = () => [],
  { unguarded }: ExecutorSuiteOptions = {},
): void {
  describe("tool executor", async () => {
    const world = await openWorld();
    const executor = makeExecutor(world);
    const control = unguarded?.(world) ?? executor;
    afterAll(() => world.close());
    describe(executor.name, () => {
      showSkips();
      const cases = makeCases(world);
      const attacks = makeAttacks(world);
      const ending = cases.filter(({ status }) => status !== "never");
      const endless = cases.filter(({ status }) => status === "never");
      const onNetwork = ending.filter(
        (one) => executor.site === "runner" && executor.touches(useOf(one)).includes("network"),
      );

      it("has test cases", () => {
        const working = ending.filter(({ status }) => status !== "failed");
        expect(working.length, "pass at least one case that completes or is parked").toBeGreaterThan(0);
      });

      it("finds no gap for its own tools, and reports without a side effect", () => {
        for (const one of cases) {
          const use = useOf(one);
          expect(use.tool.kind, one.name).toBe(executor.kind);
          const issues = callPure(executor, "issues", pluginReturns.issues, () => executor.issues(use));
          expect(issues, `${one.name}: issues() must be empty for a tool of the cases`).toEqual([]);
          const touches = () =>
            callPure(executor, "touches", pluginReturns.domains, () => executor.touches(use));
          for (const boundary of boundaries) {
            const gaps = () =>
              callPure(executor, "gaps", pluginReturns.gaps, () => executor.gaps(boundary, use));
            expect(gaps(), `${one.name}: gaps() must return the same each time`).toEqual(gaps());
            expect(touches(), `${one.name}: touches() must return the same each time`).toEqual(touches());
          }
        }
      });

      it("proves its claims, or reports why this host can't", async (context) => {
        await expectProven(executor, context);
      });

      it("claims nothing that no attack tests", () => {
        expect(
          claimsWithoutAttack(executor, attacks),
          "pass an attack on each as the third argument",
        ).toEqual([]);
      });

      for (const attack of attacks) {
        it(`${attack.capability}: can't ${attack.name}`, { timeout: callMs }, async () => {
          expect(executor.claims).toContain(attack.capability);
          const tried = await tryExecutorAttack(executor, attack, world, control);
          expect(
            tried.control,
            unguarded === undefined
              ? needsControl
              : "the option unguarded must make an executor in which it works",
          ).toBe(true);
          expect(tried.guarded, "it works within the boundary too").toBe(false);
        });
      }

      it("executes each case to its outcome without throwing", { timeout: callMs }, async () => {
        for (const one of ending) {
          const { outcome } = await executeCase(executor, one, world);
          assertOutcome(one, outcome);
        }
      });

      it("acts only in the domains that it declares", { timeout: callMs }, async () => {
        for (const one of ending) {
          const { observed } = await executeCase(executor, one, world);
          const stated = executor.touches(useOf(one));
          expect(
            [...observed].filter((domain) => !stated.includes(domain)),
            `${one.name}: touches() must name every domain in which the call acts`,
          ).toEqual([]);
        }
      });

      it("keeps simultaneous calls apart", { timeout: callMs }, async () => {
        for (const one of ending) {
          const calls = Array.from({ length: atOnce }, () => executeCase(executor, one, world));
          for (const { outcome } of await Promise.all(calls)) assertOutcome(one, outcome);
        }
      });

      const itEnds = "ends a call when its signal aborts, or has aborted before";
      if (endless.length > 0)
        it(itEnds, { timeout: callMs }, async () => {
          for (const one of endless) {
            expect(
              await settled(executeCase(executor, one, world, { signal: AbortSignal.abort() })),
            ).not.toBe("completed");
            const abort = new AbortController();
            const held = world.held();
            const call = settled(executeCase(executor, one, world, { signal: abort.signal }));
            const early = await Promise.race([call, started(world, held)]);
            expect(early, `${one.name} ended by itself`).toBe("started");
            abort.abort();
            expect(await call).not.toBe("completed");
          }
        });

      const itKeeps = "enforces the boundary itself if it acts on the runner";
      if (onNetwork.length > 0)
        it(itKeeps, { timeout: callMs }, async () => {
          for (const one of onNetwork) {
            const before = world.requests();
            await executeCase(control, one, world);
            const sent = world.requests() - before;
            expect(
              sent,
              `${one.name}: the control's calls must reach world.url without a boundary: ${needsControl}`,
            ).not.toBe(0);
            const reached = world.requests();
            for (const boundary of [
              boundaryOf({ network: "off" }),
              boundaryOf({ network: { allowlist: ["192.0.2.1"] } }),
            ]) {
              expect(executor.gaps(boundary, useOf(one)), "a server off the list must be a gap").not.toEqual(
                [],
              );
              expect(await settled(executeCase(executor, one, world, { boundary }))).not.toBe("completed");
              expect(world.requests(), "it connected although the boundary forbids it").toBe(reached);
            }
          }
        });
    });
  });
}

const boundaries = deepFrozen([
  boundaryOf({}),
  boundaryOf({ network: "off", filesystem: "readonly", secrets: "hidden" }),
  boundaryOf({ network: { allowlist: ["example.com", "192.0.2.0/24"] }, resources: { memoryMb: 100 } }),
  boundaryOf({ network: "off", enforcement: "best_effort" }),
]);

function assertOutcome({ name, status, output }: ExecutorCase, outcome: ToolOutcome): void {
  expect(outcome.status, `${name}: ${JSON.stringify(outcome)}`).toBe(status);
  if (output === undefined || outcome.status === "parked") return;
  if (typeof output === "string") expect(outcome.output, name).toBe(output);
  else expect(outcome.output, name).toMatch(output);
}

/** An aborted call may fail or reject: both end it. */
async function settled(call: ReturnType<typeof executeCase>): Promise<string> {
  return call.then(
    ({ outcome }) => outcome.status,
    () => "rejected",
  );
}

/** Time for a call to reach the server, or to be in progress. */
async function started(world: OpenWorld, held: number): Promise<"started"> {
  for (let look = 0; look < 50 && world.held() <= held; look++)
    await new Promise((resolve) => setTimeout(resolve, 10));
  return "started";
}
