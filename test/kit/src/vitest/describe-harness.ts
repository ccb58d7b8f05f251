import { runRequestSchema } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { harnessChecks } from "../harness/checks.js";
import { HarnessStage, type MakeHarness } from "../harness/harness-stage.js";
import { expectProven } from "./expect-proven.js";
import { showSkips } from "./skip.js";

const checkMs = 60_000;

/**
 * The requirements on a harness for ACP agents, as a suite: scripted agents, good and bad ones, in an unconfined
 * sandbox.
 *
 * @param makeHarness given the path of a Node.js program to run in place of the agent's own.
 */
export function describeHarness(makeHarness: MakeHarness): void {
  const harness = makeHarness("/nonexistent/agent.mjs");
  describe(`harness ${harness.name}`, () => {
    showSkips();
    it("describes itself as data, and checks a request without a side effect", () => {
      const request = runRequestSchema.parse({});
      expect(harness.site).toBe("sandbox");
      expect(harness.id).not.toBe("");
      expect(harness.touches(request)).toEqual(harness.touches(request));
      expect(harness.issues(request, "host", false)).toEqual(harness.issues(request, "host", false));
      expect(request).toEqual(runRequestSchema.parse({}));
    });

    it("proves its claims, or reports why this host can't", async (context) => {
      await expectProven(harness, context);
    });

    for (const { title, script, check } of harnessChecks) {
      it(title, { timeout: checkMs }, async () => {
        const stage = await HarnessStage.open(makeHarness, script);
        try {
          await check(stage);
        } finally {
          await stage.close();
        }
      });
    }
  });
}
