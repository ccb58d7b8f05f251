import type { ModelGateway } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { kitApis, useOf } from "../gateway/apis.js";
import { gatewayChecks } from "../gateway/checks.js";
import { GatewayStage } from "../gateway/gateway-stage.js";
import { expectProven } from "./expect-proven.js";

const checkMs = 30_000;

/**
 * Everything a model gateway has to hold, as a suite: agent and endpoint are the kit's, and the sandbox is one that asks
 * for no token. Each API that the gateway carries is tried.
 */
export function describeModelGateway(makeGateway: () => ModelGateway): void {
  const gateway = makeGateway();
  const carried = kitApis.filter(
    (api) => gateway.issues(useOf(api, "https://model.example", "k")).length === 0,
  );
  describe(`model gateway ${gateway.name}`, { timeout: checkMs }, () => {
    it("states itself as data, and carries at least one API", () => {
      expect(gateway.site).toBe("runner");
      expect(carried).not.toEqual([]);
      const [api] = carried;
      if (api === undefined) return expect.unreachable();
      const use = useOf(api, "https://model.example", "k");
      expect(gateway.touches(use)).toEqual(gateway.touches(use));
      expect(gateway.issues(use)).toEqual(gateway.issues(use));
    });

    it("proves what it claims, or says why this host can't", async (context) => {
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
