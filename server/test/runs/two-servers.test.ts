import { describe, expect, it } from "vitest";
import { asking, bodyOf, recordsOf } from "../support/server.js";
import { counting, databaseFile, serveStored } from "../support/stored-server.js";

const detached = { prefer: "respond-async" };

describe("two servers on one SQLite file", () => {
  it("are replicas: each serves the other's runs, and a session belongs to one of them", async () => {
    const file = await databaseFile();
    const { script, proceed } = counting(2);
    const [one, two] = [await serveStored(script, { file }), await serveStored(script, { file })];
    const { runId } = await bodyOf<{ runId: string }>(await one.post("/run", asking, detached));
    const following = two.get(`/runs/${runId}/events`);
    proceed(2);
    expect((await recordsOf(await following)).at(-1)).toMatchObject({ kind: "result", result: { ok: true } });
    proceed(2);
    expect((await one.post("/run", { ...asking, sessionId: "s" })).status).toBe(200);
    const refused = await two.post("/run", { ...asking, sessionId: "s" });
    expect([refused.status, await refused.json()]).toMatchObject([409, { failure: { address: one.url } }]);
  });

  it("leave a run to the one that drains, even if the other starts at its address", async () => {
    const file = await databaseFile();
    const { agent, script, proceed } = counting(1);
    const configuration = { server: { drainMs: 20_000 } };
    const one = await serveStored(script, { file, configuration });
    const { runId } = await bodyOf<{ runId: string }>(await one.post("/run", asking, detached));
    await expect.poll(() => agent.begun).toBe(1);
    const closing = one.server.close();
    await expect.poll(() => one.get("/health").catch(() => "gone")).toBe("gone");
    const two = await serveStored(script, { file, port: new URL(one.url).port });
    expect(two.url).toBe(one.url);
    proceed(1);
    await closing;
    expect(await (await two.get(`/runs/${runId}`)).json()).toMatchObject({
      state: "ended",
      result: { ok: true },
    });
  });
});
