import { expect, it } from "vitest";
import { asking, bodyOf, recordsOf } from "../../support/server.js";
import { counting, describePlaces } from "../../support/stored-server.js";

interface Info {
  readonly runId: string;
  readonly state: string;
  readonly events: number;
  readonly result?: { readonly ok: boolean; readonly output: string; readonly receipt: object };
}

const texts = (records: readonly Record<string, unknown>[]) =>
  records.flatMap(({ event }) =>
    typeof event === "object" && event !== null && "text" in event ? [event.text] : [],
  );

describePlaces("a detached run", (serve) => {
  it.each([
    ["Prefer: respond-async", {}, { prefer: "respond-async" }],
    ["detach: true", { detach: true }, {}],
  ])("by %s is accepted, goes on by itself, and can be read afterwards", async (_how, body, headers) => {
    const { agent, script, proceed } = counting();
    const { post, get } = await serve(script);
    const accepted = await post("/run", { ...asking, ...body }, headers);
    expect(accepted.status).toBe(202);
    const { runId, state } = await bodyOf<Info>(accepted);
    expect(state).toBe("running");
    expect(accepted.headers.get("location")).toBe(`/runs/${runId}`);
    await expect.poll(() => agent.begun).toBe(1);
    expect(await (await get(`/runs/${runId}`)).json()).toMatchObject({ runId, state: "running" });
    proceed(3);
    await expect.poll(async () => (await bodyOf<Info>(await get(`/runs/${runId}`))).state).toBe("ended");
    const info = await bodyOf<Info>(await get(`/runs/${runId}`));
    expect(info.result).toMatchObject({ ok: true, output: "step 1\n\nstep 2\n\nstep 3" });
    expect(info.result?.receipt).toMatchObject({ enforcement: "strict" });
    const records = await recordsOf(await get(`/runs/${runId}/events`));
    expect(records).toHaveLength(info.events + 1);
    expect(texts(records)).toEqual(["step 1", "step 2", "step 3"]);
    expect(records.at(-1)).toMatchObject({ kind: "result", result: { ok: true, runId, events: [] } });
  });

  it("can be followed while it runs by any number of readers, each from its own position", async () => {
    const { script, proceed } = counting();
    const { post, get } = await serve(script);
    const { runId } = await bodyOf<Info>(await post("/run", asking, { prefer: "respond-async" }));
    const readers = [0, 1, 2].map(async (after) =>
      recordsOf(await get(`/runs/${runId}/events?after=${after}`)),
    );
    const events = await get(`/runs/${runId}/events`, { accept: "text/event-stream", "last-event-id": "1" });
    proceed(3);
    const [all = [], ...later] = await Promise.all(readers);
    expect(texts(all)).toEqual(["step 1", "step 2", "step 3"]);
    for (const [index, records] of later.entries()) expect(records).toEqual(all.slice(index + 1));
    const text = await events.text();
    const ids = [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
    expect(ids).toEqual(all.slice(1).map((_record, index) => index + 2));
    const data = [...text.matchAll(/^data: (.*)$/gm)].map(([, json = ""]) => JSON.parse(json));
    expect(data).toEqual(all.slice(1));
    const again = await get(`/runs/${runId}/events?after=${all.length}`);
    expect(again.status).toBe(204);
    const unknown = String(all.length + 1);
    for (const [query, headers, path] of [
      [`?after=${unknown}`, {}, "after"],
      ["", { "last-event-id": unknown }, "Last-Event-ID"],
    ] as const) {
      const refused = await get(`/runs/${runId}/events${query}`, headers);
      expect(refused.status).toBe(400);
      const message = expect.stringContaining(`which has ${all.length}`);
      expect(await refused.json()).toMatchObject({ failure: { issues: [{ path, message }] } });
    }
  });

  it("can be cancelled, and then deleted with all its data", async () => {
    const { agent, script } = counting();
    const { post, get, remove } = await serve(script);
    const { runId } = await bodyOf<Info>(await post("/run", asking, { prefer: "respond-async" }));
    await expect.poll(() => agent.begun).toBe(1);
    expect((await remove(`/runs/${runId}`)).status).toBe(400);
    expect((await post(`/runs/${runId}/cancel`, {})).status).toBe(200);
    await expect.poll(async () => (await bodyOf<Info>(await get(`/runs/${runId}`))).state).toBe("ended");
    expect(agent.aborted).toBe(1);
    expect(await (await get(`/runs/${runId}`)).json()).toMatchObject({ result: { stopReason: "cancelled" } });
    expect((await remove(`/runs/${runId}`)).status).toBe(200);
    expect((await get(`/runs/${runId}`)).status).toBe(404);
    expect((await get(`/runs/${runId}/events`)).status).toBe(404);
    expect((await remove(`/runs/${runId}`)).status).toBe(404);
  });

  it("waits for a free slot, and is refused if it could never run", async () => {
    const { agent, script, proceed } = counting(1);
    const { post, get } = await serve(script, { configuration: { limits: { concurrentRuns: 1 } } });
    const async = { prefer: "respond-async" };
    const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    const [first, second] = [
      await post("/run", asking, async),
      await post("/run", asking, { ...async, traceparent }),
    ];
    const ids = [await bodyOf<Info>(first), await bodyOf<Info>(second)];
    expect(ids.map(({ state }) => state)).toEqual(["running", "queued"]);
    expect((await post("/run", { ...asking, harness: "none" }, async)).status).toBe(400);
    expect((await post("/run", asking)).status).toBe(429);
    await expect.poll(() => agent.begun).toBe(1);
    proceed(2);
    for (const { runId } of ids)
      await expect
        .poll(async () => (await bodyOf<Info>(await get(`/runs/${runId}`))).state, { timeout: 10_000 })
        .toBe("ended");
    // The queue keeps the headers of its trace.
    expect(await (await get(`/runs/${ids[1]?.runId}`)).json()).toMatchObject({
      result: { traceId: "a".repeat(32) },
    });
    expect(await (await get("/runs?state=ended")).json()).toMatchObject({
      runs: [{ runId: ids[1]?.runId }, { runId: ids[0]?.runId }],
    });
  });

  it("that waits for a slot can be cancelled", async () => {
    const { agent, script } = counting(1);
    const { post, get } = await serve(script, { configuration: { limits: { concurrentRuns: 1 } } });
    const async = { prefer: "respond-async" };
    await post("/run", asking, async);
    const { runId } = await bodyOf<Info>(await post("/run", asking, async));
    expect((await post(`/runs/${runId}/cancel`, {})).status).toBe(200);
    expect(await (await get(`/runs/${runId}`)).json()).toMatchObject({
      state: "ended",
      // As for a run that had begun.
      result: { ok: true, stopReason: "cancelled" },
    });
    await expect.poll(() => agent.begun).toBe(1);
  });
});
