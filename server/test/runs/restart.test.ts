import { streamRecordSchema } from "@ambit/core/contract";
import { describe, expect, it } from "vitest";
import { asking, bodyOf } from "../support/server.js";
import { counting, databaseFile, serveStored } from "../support/stored-server.js";

describe("after a restart", () => {
  it("ended runs can be read, and others have ended once", async () => {
    const file = await databaseFile();
    const { agent, script, proceed } = counting();
    const one = await serveStored(script, { file });
    const detached = { prefer: "respond-async" };
    const { runId } = await bodyOf<{ runId: string }>(await one.post("/run", asking, detached));
    await expect.poll(() => agent.begun).toBe(1);
    proceed(1);
    // Ends it with its result: the drain's.
    await one.server.close();
    const two = await serveStored(script, { file });
    expect(await (await two.get(`/runs/${runId}`)).json()).toMatchObject({
      state: "ended",
      result: { ok: false, failure: { code: "run_cancelled", retryable: true } },
    });
    const text = await (await two.get(`/runs/${runId}/events`)).text();
    expect(text).toContain("step 1");
    expect(text.match(/"kind":"result"/g)).toHaveLength(1);
  });

  it("each event has the time that its first reader got", async () => {
    const file = await databaseFile();
    const { script, proceed } = counting();
    const one = await serveStored(script, { file });
    const response = await one.post("/stream", asking);
    const runId = response.headers.get("x-ambit-run-id");
    proceed(3);
    const lines = (await response.text()).split("\n");
    await one.server.close();
    const two = await serveStored(script, { file });
    expect((await (await two.get(`/runs/${runId}/events`)).text()).split("\n")).toEqual(lines);
    const records = lines
      .filter((line) => line !== "")
      .map((line) => streamRecordSchema.parse(JSON.parse(line)));
    expect(records.filter((record) => "at" in record)).toHaveLength(records.length - 1);
  });

  it("a queued run starts on the next server", async () => {
    const file = await databaseFile();
    const configuration = { limits: { concurrentRuns: 1 } };
    const first = counting();
    const one = await serveStored(first.script, { file, configuration });
    const detached = { prefer: "respond-async" };
    await one.post("/run", asking, detached);
    const { runId, state } = await bodyOf<{ runId: string; state: string }>(
      await one.post("/run", asking, detached),
    );
    expect(state).toBe("queued");
    await one.server.close();
    const second = counting();
    second.proceed(3);
    const two = await serveStored(second.script, { file, configuration });
    await expect
      .poll(async () => (await two.get(`/runs/${runId}`)).json(), { timeout: 10_000 })
      .toMatchObject({ state: "ended", result: { ok: true } });
  });
});
