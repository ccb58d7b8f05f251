import { createHash } from "node:crypto";
import { freePort } from "@ambit/backend-kit";
import { type Postgres, postgresIsMissing, startPostgres } from "@ambit/test-postgres";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { Replica } from "./cluster.js";

const runSchema = z.looseObject({
  runId: z.string(),
  startedAt: z.string().optional(),
  endedAt: z.string().optional(),
});

/** A turn of a named session, which counts to a number. */
const turn = (sessionId: string, content = "count to 1") =>
  JSON.stringify({ sessionId, messages: [{ role: "user", content }] });

const hashed = (token: string) => `sha256:${createHash("sha256").update(token).digest("hex")}`;
const tokens = [
  { token: hashed("sessions"), project: "sessions" },
  { token: hashed("limited"), project: "limited", limits: { concurrentRuns: 1 } },
];

const operator = "a-token-of-the-operator";

describe("two replicas", () => {
  const missing = postgresIsMissing();
  let postgres: Postgres | undefined;
  const replicas: Replica[] = [];

  beforeAll(async () => {
    if (missing !== undefined) return;
    postgres = await startPostgres();
    const environment = {
      AMBIT_POSTGRES_URL: postgres.url,
      AMBIT_TEST_TOKENS: JSON.stringify(tokens),
      AMBIT_TOKEN: operator,
    };
    for (let index = 0; index < 2; index += 1)
      replicas.push(new Replica(`http://127.0.0.1:${await freePort()}`, environment, false));
    await Promise.all(replicas.map((replica) => replica.start()));
  }, 60_000);
  afterAll(async () => {
    await Promise.all(replicas.map((replica) => replica.kill()));
    await postgres?.stop();
  });
  beforeEach((context) => {
    if (missing !== undefined) context.skip(`host: ${missing}`);
  });

  const ofSessions = { authorization: "Bearer sessions" };
  const pair = () => {
    const [owner, other] = replicas;
    if (owner === undefined || other === undefined) throw new Error("the replicas aren't there");
    return { owner, other };
  };
  const metricsOf = async ({ url }: Replica) =>
    (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${operator}` } })).text();
  /** Requests that this replica has refused so far, with this code. */
  const refusedBy = async (replica: Replica, code: string) => {
    const line = new RegExp(`^ambit_requests_refused_total{code="${code}"} (\\d+)$`, "m");
    return Number(line.exec(await metricsOf(replica))?.[1] ?? 0);
  };
  const post = (replica: Replica, body: string, headers: Record<string, string> = {}) =>
    fetch(`${replica.url}/run`, { method: "POST", body, headers: { ...ofSessions, ...headers } });

  it("respond with 409 and the owner's address for a local session of another replica, in every form", async () => {
    const { owner, other } = pair();
    expect(await (await post(owner, turn("local"))).json()).toMatchObject({ ok: true, sessionId: "local" });
    const before = await refusedBy(other, "session_elsewhere");
    for (const accept of ["application/json", "application/x-ndjson", "text/event-stream"]) {
      const refused = await post(other, turn("local"), { accept });
      expect(refused.status).toBe(409);
      const text = await refused.text();
      const [json = ""] = /\{.*\}/.exec(text) ?? [];
      const answer: { result?: unknown } = JSON.parse(json);
      expect(answer.result ?? answer).toMatchObject({
        ok: false,
        failure: { code: "session_elsewhere", retryable: false, address: owner.url },
        error: `Session 'local' lives on another replica: send its runs to ${owner.url}, or have the load balancer choose by session.`,
      });
    }
    // The fix works.
    expect((await post(owner, turn("local"))).status).toBe(200);
    const ending = await fetch(`${other.url}/sessions/local`, { method: "DELETE", headers: ofSessions });
    expect([ending.status, await ending.json()]).toMatchObject([409, { failure: { address: owner.url } }]);
    expect(await refusedBy(other, "session_elsewhere")).toBe(before + 3);
    expect(await metricsOf(other)).not.toContain("run_cancelled");
  });

  it("enforce a project's quotas together, and queue its detached runs", async () => {
    const { owner, other } = pair();
    const headers = { authorization: "Bearer limited" };
    const long = JSON.stringify({ messages: [{ role: "user", content: "count to 60" }] });
    const detached = { ...headers, prefer: "respond-async" };
    const begin = async (replica: Replica) =>
      runSchema.parse(await (await post(replica, long, detached)).json());
    const first = await begin(owner);
    expect(first).toMatchObject({ state: "running" });
    const before = await refusedBy(other, "at_capacity");
    const refused = await post(other, long, headers);
    expect([refused.status, refused.headers.get("retry-after"), await refused.json()]).toMatchObject([
      429,
      "1",
      { error: "The project has reached its quota: 1 concurrent runs." },
    ]);
    expect(await refusedBy(other, "at_capacity")).toBe(before + 1);
    const second = await begin(other);
    expect(second).toMatchObject({ state: "queued" });
    // Other projects have their own.
    expect((await post(other, turn("meanwhile"))).status).toBe(200);
    const info = async (runId: string) =>
      runSchema.parse(await (await fetch(`${other.url}/runs/${runId}`, { headers })).json());
    const ended = { state: "ended", result: { ok: true } };
    await expect.poll(() => info(second.runId), { timeout: 20_000 }).toMatchObject(ended);
    expect(await info(first.runId)).toMatchObject(ended);
    const [one, two] = [await info(first.runId), await info(second.runId)];
    expect(Date.parse(two.startedAt ?? "")).toBeGreaterThanOrEqual(Date.parse(one.endedAt ?? ""));
  });

  it("start a new local session after its owner ended it or died", async () => {
    const { owner, other } = pair();
    await post(owner, turn("ended"));
    await fetch(`${owner.url}/sessions/ended`, { method: "DELETE", headers: ofSessions });
    expect((await post(other, turn("ended"))).status).toBe(200);
    const spending = JSON.stringify({
      sessionId: "of-the-dead",
      budget: { session: { tokens: 150 } },
      messages: [{ role: "user", content: "spend" }],
    });
    expect(await (await post(owner, spending)).json()).toMatchObject({ ok: true, output: "spent: true" });
    const body = JSON.stringify({ messages: [{ role: "user", content: "count to 1000" }] });
    await post(owner, body, { prefer: "respond-async" });
    await owner.kill();
    await expect
      .poll(async () => (await post(other, turn("of-the-dead"))).status, { timeout: 20_000, interval: 200 })
      .toBe(200);
    // Its spending is kept.
    expect(await (await post(other, spending)).json()).toMatchObject({
      error: "The run's budget is used up: 200 of 150 tokens.",
      failure: { code: "budget_exceeded" },
    });
    // The replica that ended its run counted it.
    await expect
      .poll(() => metricsOf(other), { timeout: 10_000 })
      .toContain('ambit_runs_total{outcome="runner_lost",harness="counting",sandbox="none"} 1');
  });
});
