import { expect, it } from "vitest";
import { asking, recordsOf } from "../support/server.js";
import { counting, describePlaces, serveStored } from "../support/stored-server.js";

const key = { "idempotency-key": "order-17" };

describePlaces("a request with an Idempotency-Key", (serve) => {
  it("that is repeated gets the existing run, running or ended, in the requested form", async () => {
    const { agent, script, proceed } = counting();
    const { post, get } = await serve(script);
    const first = post("/run", asking, key);
    await expect.poll(() => agent.begun).toBe(1);
    const second = post("/run", asking, { ...key, accept: "application/x-ndjson" });
    const detached = await post("/run", asking, { ...key, prefer: "respond-async" });
    expect([detached.status, detached.headers.get("location")]).toEqual([202, "/runs/order-17"]);
    proceed(3);
    const result = await (await first).json();
    expect(result).toMatchObject({ ok: true, runId: "order-17" });
    expect((await recordsOf(await second)).at(-1)).toMatchObject({ kind: "result", result: { ok: true } });
    const again = await post("/run", asking, key);
    expect(again.status).toBe(200);
    expect(await again.json()).toEqual(result);
    expect(agent.begun).toBe(1);
    expect(await (await get("/runs")).json()).toMatchObject({ runs: [{ runId: "order-17" }] });
  });

  it("that is sent twice simultaneously starts one run", async () => {
    const { agent, script, proceed } = counting();
    const { post } = await serve(script);
    const both = [post("/run", asking, key), post("/run", asking, key)];
    proceed(3);
    const [one, other] = await Promise.all((await Promise.all(both)).map((response) => response.json()));
    expect(other).toEqual(one);
    expect(agent.begun).toBe(1);
  });

  it("that comes in a burst, and needs the last slot, starts one run, and is refused for none of them", async () => {
    const { agent, script, proceed } = counting();
    const { post } = await serve(script, { configuration: { limits: { concurrentRuns: 1 } } });
    const burst = Array.from({ length: 12 }, () => post("/run", asking, key));
    await expect.poll(() => agent.begun).toBe(1);
    // Without a free slot, and without one of its own.
    burst.push(post("/run", asking, key));
    const other = await post("/run", asking, { "idempotency-key": "order-18" });
    expect(other.status).toBe(429);
    const detached = { ...key, prefer: "respond-async" };
    expect(await (await post("/run", asking, detached)).json()).toMatchObject({ state: "running" });
    proceed(3);
    const responses = await Promise.all(burst);
    expect(responses.map(({ status }) => status)).toEqual(burst.map(() => 200));
    expect(agent.begun).toBe(1);
    const ended = await post("/run", asking, detached);
    expect([ended.status, await ended.json()]).toMatchObject([202, { runId: "order-17", state: "ended" }]);
  });

  it("with another body is refused with 422", async () => {
    const { script, proceed } = counting();
    const { post } = await serve(script);
    proceed(3);
    await (await post("/run", asking, key)).json();
    const refused = await post("/run", { ...asking, sessionId: "s" }, key);
    expect(refused.status).toBe(422);
    expect(await refused.json()).toMatchObject({ failure: { code: "idempotency_key_reused" } });
  });

  it("can name a run once as runId in the body", async () => {
    const { script, proceed } = counting();
    const { post } = await serve(script);
    proceed(3);
    expect((await post("/run", { ...asking, runId: "r" })).status).toBe(200);
    const again = await post("/run", { ...asking, runId: "r" });
    expect(again.status).toBe(400);
    expect(await again.json()).toMatchObject({ failure: { issues: [{ path: "runId" }] } });
  });
});

it("an Idempotency-Key with another body is refused after a restart too", async () => {
  const { script, proceed } = counting();
  const one = await serveStored(script);
  proceed(3);
  await (await one.post("/run", asking, key)).json();
  await one.server.close();
  const two = await serveStored(script, { file: one.file });
  expect((await two.post("/run", { ...asking, sessionId: "s" }, key)).status).toBe(422);
  expect((await two.post("/run", asking, key)).status).toBe(200);
});
