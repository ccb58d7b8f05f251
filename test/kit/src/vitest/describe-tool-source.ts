import type { ToolSource } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { boundaryOf } from "../executor/execute.js";
import { toolSourceChecks } from "../tool-source/checks.js";
import { ToolSourceStage } from "../tool-source/tool-source-stage.js";
import { expectProven } from "./expect-proven.js";

const checkMs = 60_000;

/**
 * Everything a tool source has to hold, as a suite: MCP servers of the kit, good and bad ones, on loopback or as a
 * process in a bare sandbox.
 *
 * @param makeSource one that may connect to loopback without TLS, where it connects from the runner.
 */
export function describeToolSource(makeSource: () => ToolSource): void {
  const source = makeSource();
  describe(`tool source ${source.name}`, () => {
    it("states what it touches and covers without a side effect", async () => {
      const stage = await ToolSourceStage.open(source, "normal");
      const server = stage.serverOf();
      expect(source.issues(server)).toEqual([]);
      expect(source.touches(server)).toEqual(source.touches(server));
      expect(source.touches(server)).toContain(source.site === "runner" ? "network" : "process");
      const off = boundaryOf({ network: "off", enforcement: "strict" });
      expect(source.gaps(off, server)).toEqual(source.gaps(off, server));
      // What connects from the runner isn't held by a sandbox.
      if (source.site === "runner") expect(source.gaps(off, server)).not.toEqual([]);
      expect(server).toEqual(stage.serverOf());
      await stage.close();
    });

    it("proves what it claims, or says why this host can't", async (context) => {
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
