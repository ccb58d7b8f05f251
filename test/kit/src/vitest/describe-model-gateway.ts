import type { ModelGateway } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { kitApis, useOf } from "../gateway/apis.js";
import { gatewayChecks } from "../gateway/checks.js";
import { GatewayStage } from "../gateway/gateway-stage.js";
import { expectProven } from "./expect-proven.js";
import { showSkips } from "./skip.js";

const checkMs = 30_000;

/**
 * The requirements on a model gateway, as a suite: agent and endpoint are simulated, and the sandbox checks no token.
 * Each API that the gateway supports is tested.
 */
export function describeModelGateway(makeGateway: () => ModelGateway): void {
  const gateway = makeGateway();
  const carried = kitApis.filter(
    (api) => gateway.issues(useOf(api, "https://model.example", "k")).length === 0,
  );
  describe(`model gateway ${gateway.name}`, { timeout: checkMs }, () => {
    showSkips();
    it("describes itself as data, and supports at least one API", () => {
      expect(gateway.site).toBe("runner");
      expect(carried).not.toEqual([]);
      const [api] = carried;
      if (api === undefined) return expect.unreachable();
      const use = useOf(api, "https://model.example", "k");
      expect(gateway.touches(use)).toEqual(gateway.touches(use));
      expect(gateway.issues(use)).toEqual(gateway.issues(use));
    });

    it("proves its claims, or reports why this host can't", async (context) => {
      await expectProven(gateway, context);
    });

    describe.each(carried)("$path", (api) => {
      for (const { title, check } of gatewayChecks) {
        it(title, async () => {
          const stage = await GatewayStage.open(makeGateway(), api);
          try {
            await check(stage);
          } finally {
            await stage.close();
          }
        });
      }
    });
  });
}
