import { expect, it } from "vitest";
import { newToken } from "../../src/tenants/caller.js";
import { saying } from "../support/scripted-agent.js";
import { asking, bodyOf } from "../support/server.js";
import { describePlaces } from "../support/stored-server.js";

const [acme, other] = [newToken(), newToken()];
const operator = "the-operator's-token-which-is-long-enough";
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describePlaces("what runs used", (serve) => {
  it("is shown to each project alone, beside its quotas", async () => {
    const limits = { concurrentRuns: 4, runsPerMinute: 60, sessions: 3, usdPerDay: 50 };
    const tokens = [
      { token: acme.hash, project: "acme", limits },
      { token: other.hash, project: "other" },
    ];
    const { post, get } = await serve(saying("Hello."), { token: operator, configuration: { tokens } });
    for (const sessionId of ["s", "t"]) await post("/run", { ...asking, sessionId }, bearer(acme.token));
    await post("/run", asking, bearer(other.token));
    const answer = async (path: string, token: string) => bodyOf(await get(path, bearer(token)));
    const runs = (completed: number) => ({ completed, paused: 0, cancelled: 0, failed: 0 });
    expect(await answer("/usage?by=project", operator)).toMatchObject({
      by: "project",
      total: { runs: runs(3), inputTokens: 0, outputTokens: 0, usd: 0, sandboxMs: expect.any(Number) },
      groups: [
        { key: "acme", runs: runs(2) },
        { key: "other", runs: runs(1) },
      ],
    });
    const acmeUsage = await answer("/usage", acme.token);
    expect(acmeUsage).toMatchObject({ by: "day", total: { runs: runs(2) } });
    expect(await answer("/usage?projectId=acme&by=harness", operator)).toMatchObject({
      groups: [{ key: "scripted", runs: runs(2) }],
    });
    const quotas = {
      projectId: "acme",
      concurrentRuns: { limit: 4, used: 0 },
      runsPerMinute: { limit: 60, used: expect.any(Number) },
      sessions: { limit: 3, used: 2 },
      usdPerDay: { limit: 50, used: 0, resetsAt: expect.any(String) },
    };
    expect(await answer("/quotas", operator)).toEqual({ quotas: [quotas, { projectId: "other" }] });
    expect(await answer("/quotas", acme.token)).toEqual({ quotas: [quotas] });
    expect(await answer("/quotas", other.token)).toEqual({ quotas: [{ projectId: "other" }] });
    for (const path of ["/usage?projectId=acme", "/quotas?projectId=acme"])
      expect((await get(path, bearer(other.token))).status).toBe(400);
  });

  it("is asked for days that there are", async () => {
    const { get } = await serve(saying("Hello."));
    const refused = async (query: string) => (await get(`/usage?${query}`)).status;
    expect(await (await get("/usage?from=2024-02-28&to=2024-03-01")).json()).toMatchObject({
      from: "2024-02-28",
      to: "2024-03-01",
      groups: [],
    });
    for (const query of [
      "from=2024-02-30",
      "to=today",
      "from=2024-03-02&to=2024-03-01",
      "from=2020-01-01",
      "by=week",
    ])
      expect([query, await refused(query)]).toEqual([query, 400]);
  });
});
