import { expect, it } from "vitest";
import { saying } from "../support/scripted-agent.js";
import { asking, bodyOf } from "../support/server.js";
import { describePlaces } from "../support/stored-server.js";

interface Refused {
  readonly failure: { readonly issues: readonly { readonly path: string; readonly message: string }[] };
}

describePlaces("a list of runs", (serve) => {
  it("is filtered and paged as requested, or refused", async () => {
    const { post, get } = await serve(saying("Hello."));
    for (const sessionId of ["s", "s", "t"]) await post("/run", { ...asking, sessionId });
    const list = async (query: string) =>
      (await bodyOf<{ runs: { runId: string; sessionId: string }[] }>(await get(`/runs?${query}`))).runs;
    const all = await list("state=ended");
    expect(all.map(({ sessionId }) => sessionId)).toEqual(["t", "s", "s"]);
    expect(await list("sessionId=s")).toEqual(all.slice(1));
    expect(await list(`limit=1&after=${all[0]?.runId}`)).toEqual([all[1]]);
    expect(await list(`after=${all[2]?.runId}`)).toEqual([]);
    expect(await list("state=queued")).toEqual([]);
    expect(await list("outcome=completed&harness=scripted&sandbox=none")).toEqual(all);
    for (const other of ["outcome=failed", "asking=true", "harness=other", "sandbox=local"])
      expect(await list(other)).toEqual([]);
    expect(await (await get("/sessions/s/run")).json()).toMatchObject({ ...all[1], result: { ok: true } });
    expect((await get("/sessions/none/run")).status).toBe(404);
    expect((await get("/sessions/s/run?projectId=other")).status).toBe(404);
    const refused = async (query: string) =>
      (await bodyOf<Refused>(await get(query))).failure.issues.map(
        ({ path, message }) => `${path} ${message}`,
      );
    expect(await refused("/runs?sesionId=s")).toEqual(["sesionId is unknown here: did you mean sessionId?"]);
    expect(await refused("/runs?outcome=ok")).toEqual([
      "outcome must be one of completed, paused, cancelled, failed",
    ]);
    expect(await refused("/runs?state=done")).toEqual(["state must be one of queued, running, ended"]);
    for (const [route, row] of [
      ["/runs", "run"],
      ["/interactions", "question"],
      ["/deliveries", "message"],
    ])
      expect(await refused(`${route}?after=gone`)).toEqual([
        expect.stringContaining(`after names no stored ${row}`),
      ]);
    expect(await refused("/interactions?status=open")).toEqual([
      expect.stringContaining("expected one of state, runId"),
    ]);
    expect(await refused("/sessions?limit=many")).toEqual([expect.stringContaining("limit must be")]);
    for (const size of [0, 1_001])
      expect(await refused(`/runs?limit=${size}`)).toEqual(["limit must be 1 to 1000"]);
    expect(await refused("/runs?state=ended&state=queued")).toEqual([
      "state is given more than once: give it once",
    ]);
  });

  it("loses what retention deletes", async () => {
    const configuration = { store: { maxAgeMs: 1 }, memory: { maxAgeMs: 1 } };
    const { post, get } = await serve(saying("Hello."), { configuration });
    expect((await post("/run", asking)).status).toBe(200);
    await expect.poll(async () => (await get("/runs")).json(), { timeout: 20_000 }).toEqual({ runs: [] });
  });
});
