import type { ToolSource } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { boundaryOf } from "../executor/execute.js";
import { toolSourceChecks } from "../tool-source/checks.js";
import { ToolSourceStage } from "../tool-source/tool-source-stage.js";
import { expectProven } from "./expect-proven.js";
import { showSkips } from "./skip.js";

const checkMs = 60_000;

/**
 * The requirements on a tool source, as a suite: MCP servers of the kit, good and bad ones, on loopback or as a process
 * in an unconfined sandbox.
 *
 * @param makeSource makes a source that may connect to loopback without TLS, if it connects from the runner.
 */
export function describeToolSource(makeSource: () => ToolSource): void {
  const source = makeSource();
  describe(`tool source ${source.name}`, () => {
    showSkips();
    it("reports touched domains and gaps without a side effect", async () => {
      const stage = await ToolSourceStage.open(source, "normal");
      const server = stage.serverOf();
      expect(source.issues(server)).toEqual([]);
      expect(source.touches(server)).toEqual(source.touches(server));
      expect(source.touches(server)).toContain(source.site === "runner" ? "network" : "process");
      const off = boundaryOf({ network: "off", enforcement: "strict" });
      expect(source.gaps(off, server)).toEqual(source.gaps(off, server));
      // A connection from the runner isn't restricted by a sandbox.
      if (source.site === "runner") expect(source.gaps(off, server)).not.toEqual([]);
      expect(server).toEqual(stage.serverOf());
      await stage.close();
    });

    it("proves its claims, or reports why this host can't", async (context) => {
      await expectProven(source, context);
    });

    for (const { title, script, check } of toolSourceChecks) {
      it(title, { timeout: checkMs }, async () => {
        const stage = await ToolSourceStage.open(makeSource(), script);
        try {
          await check(stage);
        } finally {
          await stage.close();
        }
      });
    }
  });
}
