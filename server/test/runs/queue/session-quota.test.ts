import { definePlugin, type StoreBackend } from "@ambit/core/plugin";
import type { Store } from "@ambit/durable/store";
import { sqliteStore } from "@ambit/store-sqlite";
import { expect, it } from "vitest";
import { z } from "zod";
import { newToken } from "../../../src/tenants/caller.js";
import { saying, scriptedAgent } from "../../support/scripted-agent.js";
import { asking, bodyOf, serveScript } from "../../support/server.js";
import { databaseFile } from "../../support/stored-server.js";

const { token, hash } = newToken();
const headers = { authorization: `Bearer ${token}`, prefer: "respond-async" };

/** A store in which another replica opens a session whenever this one is about to claim a run. */
async function contestedStore() {
  const sqlite = sqliteStore({ file: await databaseFile(), durability: "process" });
  const holds: unknown[] = [];
  const backend: StoreBackend<Store> = {
    name: "contested",
    open: async (scope) => {
      const store: Store = await sqlite.open(scope);
      await store.renew("other", "http://other", 60_000);
      return new Proxy(store, {
        get: (of, name) => {
          if (name !== "claim") return Reflect.get(of, name);
          return async (id: string, replica: string) => {
            const place = { project: "one", session: "theirs", replica: "other", sandbox: "none" };
            holds.push(await of.holdSession(place, 1));
            return of.claim(id, replica);
          };
        },
      });
    },
  };
  const plugin = definePlugin({
    name: "contested",
    api: 1,
    config: z.strictObject({}),
    register: (registrar) => registrar.add("store", backend),
  });
  return { holds, plugin };
}

it("a queued run has its session before it is claimed, so that no other replica takes the project's last one", async () => {
  const { holds, plugin } = await contestedStore();
  const script = saying("x");
  const { post, url, runner } = await serveScript(script, {
    configuration: {
      plugins: [scriptedAgent(script), plugin],
      tokens: [{ token: hash, project: "one", limits: { sessions: 1, concurrentRuns: 1 } }],
      limits: { concurrentRuns: 1 },
    },
  });
  const slot = runner.reserve();
  const queued = await post("/run", { ...asking, sessionId: "ours" }, headers);
  const { runId, state } = await bodyOf<{ runId: string; state: string }>(queued);
  expect(state).toBe("queued");
  slot.release();
  const stateOf = async () =>
    (await bodyOf<{ state: string }>(await fetch(`${url}/runs/${runId}`, { headers }))).state;
  await expect.poll(stateOf, { timeout: 5_000 }).toBe("ended");
  expect(holds).toEqual(["over_quota"]);
  const open = await (await fetch(`${url}/sessions`, { headers })).text();
  expect(open).toContain('"ours"');
  expect(open).not.toContain("theirs");
});
