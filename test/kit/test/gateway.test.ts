import type { ModelGateway, ModelGatewayScope, ModelUse } from "@ambit/core/plugin";
import { expect, it } from "vitest";
import { kitApis } from "../src/gateway/apis.js";
import { gatewayChecks } from "../src/gateway/checks.js";
import { GatewayStage } from "../src/gateway/gateway-stage.js";

/** Sends everything on with the credential; checks, counts, records and ends nothing. */
const careless: ModelGateway = {
  name: "careless",
  site: "runner",
  claims: [],
  touches: () => ["network"],
  gaps: () => [],
  probe: async () => [],
  issues: () => [],
  unpriced: () => [],
  open: async (use: ModelUse, { sandbox, defer }: ModelGatewayScope) => {
    const exposure = await sandbox.expose(async (request) => {
      const { pathname, search } = new URL(request.url);
      const headers = new Headers(request.headers);
      for (const name of ["content-length", "connection", "transfer-encoding"]) headers.delete(name);
      headers.set("x-api-key", Object.values(use.credentials)[0] ?? "");
      const { method } = request;
      const body = method === "GET" ? null : await request.text();
      const answer = await fetch(`${use.endpoint}${pathname}${search}`, { method, headers, body });
      return new Response(await answer.arrayBuffer(), { status: answer.status, headers: answer.headers });
    });
    defer(() => exposure.close());
    return { baseUrl: exposure.url, key: exposure.token };
  },
};

const [api] = kitApis;

it.concurrent.each(gatewayChecks)("a careless gateway fails the check '$title'", async ({ check }) => {
  if (api === undefined) return expect.unreachable();
  const stage = await GatewayStage.open(careless, api);
  const late = new Promise<never>((_resolve, reject) => setTimeout(reject, 1_000, new Error("late")));
  try {
    await expect(Promise.race([check(stage), late])).rejects.toBeInstanceOf(Error);
  } finally {
    await stage.close();
  }
});
