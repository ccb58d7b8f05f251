import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import prometheus from "@ambit/metrics-prometheus";
import sqlite from "@ambit/store-sqlite";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { newToken } from "../../src/tenants/caller.js";
import { type Script, saying, scriptedAgent } from "../support/scripted-agent.js";
import { asking, bodyOf, recordsOf, serveScript } from "../support/server.js";
import { counting, databaseFile, serveStored } from "../support/stored-server.js";
import { webhookReceiver } from "../support/webhook-receiver.js";

const newSecret = () => `whsec_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64")}`;
const secret = newSecret();
/** With receivers on loopback, which tenants reach only if the deployer allows it. */
const webhooks = { secret, retryMs: 20, privateHosts: "allow" as const };

/** A message that is tried again is looked for once a second. */
const slowly = { timeout: 10_000 };

interface Info {
  readonly state: string;
  readonly deliveries: readonly Readonly<Record<string, unknown>>[];
}
interface Refused {
  readonly failure: { readonly issues: readonly { readonly path: string; readonly message: string }[] };
}

describe("a run's webhook", () => {
  it("is signed, and posted until it is delivered, by any remaining server", async () => {
    let isDown = true;
    const receiver = await webhookReceiver((response) => {
      response.statusCode = isDown ? 503 : 204;
    });
    const file = await databaseFile();
    const configuration = { webhooks };
    const one = await serveStored(saying("Hello."), { file, configuration });
    const { runId } = await bodyOf<{ runId: string }>(
      await one.post("/run", { ...asking, webhook: { url: `${receiver.url}/?key=receivers-secret` } }),
    );
    const info = async () => bodyOf<Info>(await one.get(`/runs/${runId}`));
    await expect.poll(info, slowly).toMatchObject({
      deliveries: [{ event: "run.finished", state: "pending", status: 503, error: "HTTP 503" }],
    });
    await one.server.close();
    const before = receiver.received.length;
    isDown = false;
    const two = await serveStored(saying(), { file, configuration });
    await expect
      .poll(async () => (await two.get(`/runs/${runId}`)).json(), slowly)
      .toMatchObject({
        deliveries: [{ state: "delivered", status: 204, host: `127.0.0.1:${receiver.port}` }],
      });
    expect(receiver.received.length).toBe(before + 1);
    expect(new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    const { body, headers, message } = receiver.received.at(-1) ?? { body: "", headers: {} };
    expect(message).toMatchObject({
      type: "run.finished",
      data: { runId, output: "Hello.", stopReason: "end_turn" },
    });
    const verify = (text: string, key: string) => () =>
      new Webhook(key).verify(text, { ...headers } as Record<string, string>);
    expect(verify(body, secret)()).toEqual(message);
    expect(verify(body.replace("Hello", "Hallo"), secret)).toThrow(/signature/);
    expect(verify(body, newSecret())).toThrow(/signature/);
    const folder = dirname(file);
    const raw = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name))));
    expect(Buffer.concat(raw).includes("Hello.")).toBe(true);
    for (const text of [secret, secret.slice(6), "receivers-secret"])
      expect(Buffer.concat(raw).includes(text)).toBe(false);
  });

  it("is sent again on request after its attempts were used up, and is counted", async () => {
    let isDown = true;
    const receiver = await webhookReceiver((response) => {
      response.statusCode = isDown ? 500 : 204;
    });
    const [one, two] = [newToken(), newToken()];
    const tokens = [one, two].map(({ hash }, index) => ({
      token: hash,
      project: `p${index}`,
      webhookSecret: secret,
    }));
    const plugins = [
      scriptedAgent(saying("Hello.")),
      { use: sqlite, config: { file: await databaseFile() } },
    ];
    const configuration = {
      webhooks: { ...webhooks, attempts: 2 },
      tokens,
      plugins: [...plugins, { use: prometheus, config: {} }],
    };
    const { url, post } = await serveScript(saying(), { configuration, token: "operators" });
    const as = (token: string) => ({ authorization: `Bearer ${token}` });
    const get = async (path: string, token = "operators") =>
      (await fetch(`${url}${path}`, { headers: as(token) })).text();
    const deliveries = async (query: string, token?: string) =>
      JSON.parse(await get(`/deliveries${query}`, token));
    await post("/run", { ...asking, webhook: { url: receiver.url } }, as(one.token));
    await expect
      .poll(() => deliveries("?state=failed", one.token), slowly)
      .toMatchObject({ deliveries: [{ attempts: 2, status: 500, projectId: "p0" }] });
    const [{ id, runId }] = (await deliveries("?state=failed")).deliveries;
    expect(await get("/metrics")).toMatch(/^ambit_webhook_deliveries{state="failed"} 1$/m);
    const again = (token: string) => post(`/deliveries/${id}/redeliver`, {}, as(token));
    expect([(await again(two.token)).status, await deliveries("", two.token)]).toEqual([
      404,
      { deliveries: [] },
    ]);
    isDown = false;
    const answer = await again(one.token);
    expect([answer.status, await answer.json()]).toMatchObject([
      202,
      { id, runId, state: "pending", attempts: 2 },
    ]);
    await expect
      .poll(() => deliveries(`?runId=${runId}`), slowly)
      .toMatchObject({ deliveries: [{ id, state: "delivered", attempts: 3 }] });
    expect(receiver.received.map(({ headers }) => headers["webhook-id"])).toEqual([id, id, id]);
    const [first, , last] = receiver.received.map(({ body }) => body);
    expect(last).toBe(first);
    const figures = await get("/metrics");
    const attempts = (outcome: string) =>
      `ambit_webhook_attempts_total{outcome="${outcome}",event="run.finished"} 1`;
    for (const outcome of ["delivered", "retried", "failed"]) expect(figures).toContain(attempts(outcome));
  });

  it("reports a question, and its expiry, which is an event after the result", async () => {
    const receiver = await webhookReceiver(() => {});
    const cautious: Script = async function* ({ onPermission }) {
      const asked = { toolCallId: "c1", toolName: "wipe", input: { path: "/tmp" } };
      if ((await onPermission(asked)) !== "park") yield { type: "done" };
    };
    const { post, get } = await serveStored(cautious, {
      configuration: { webhooks, store: { interactionMs: 300 } },
    });
    const events = ["interaction.requested", "interaction.expired"];
    const { runId } = await bodyOf<{ runId: string }>(
      await post("/run", {
        ...asking,
        sessionId: "s",
        projectId: "p",
        permissions: { default: "ask" },
        webhook: { url: receiver.url, events },
      }),
    );
    const ids = () => receiver.received.map(({ message }) => message.type);
    await expect.poll(ids, slowly).toEqual(events);
    const data = {
      runId,
      sessionId: "s",
      projectId: "p",
      kind: "user_approval",
      payload: { toolName: "wipe" },
    };
    for (const { message } of receiver.received) expect(message.data).toMatchObject(data);
    const id = receiver.received[0]?.message.data.interactionId;
    const replay = async (after: number) => {
      const answer = await get(`/runs/${runId}/events?after=${after}`, { accept: "text/event-stream" });
      const records = (await answer.text()).split("\n\n").filter((text) => text.startsWith("id: "));
      return records.map((text) => ({
        number: Number(/^id: (\d+)/.exec(text)?.[1]),
        ...JSON.parse(text.slice(text.indexOf("{"))),
      }));
    };
    const whole = await replay(0);
    expect(whole.map(({ kind }) => kind)).toEqual([...Array(whole.length - 1).fill("event"), "result"]);
    const [before, expired, result] = whole.slice(-3);
    expect(expired.event).toEqual({ type: "interaction_expired", id, kind: "user_approval" });
    // In the result's earlier place is an event that says so: who had the result gets what follows.
    expect(before).toMatchObject({ event: { type: "data", name: "ambit.run_ended" } });
    expect(whole.map(({ number }) => number)).toEqual(whole.map((_, index) => index + 1));
    // A reader that counts lines gets each of them once, wherever its connection broke.
    for (let position = 0; position < whole.length; position += 1) {
      const rest = await recordsOf(await get(`/runs/${runId}/events?after=${position}`));
      expect(rest).toEqual(whole.slice(position).map(({ number: _number, ...record }) => record));
    }
    expect((await get(`/runs/${runId}/events?after=${result.number}`)).status).toBe(204);
    const late = await post(`/runs/${runId}/interactions/${id}`, { approved: true });
    expect([late.status, await late.json()]).toMatchObject([
      410,
      { error: expect.stringContaining("next turn"), failure: { code: "interaction_expired" } },
    ]);
  });

  it.each([
    ["older than runs are kept", { maxAgeMs: 1, interactionMs: 3_000 }, "wipe"],
    ["larger than what is kept", { maxMiB: 1, maxAgeMs: 3_000 }, "x".repeat(1_200_000)],
  ])(
    "reports the expiry of a question before its run is deleted, if that is %s",
    async (_why, store, toolName) => {
      const receiver = await webhookReceiver(() => {});
      const cautious: Script = async function* ({ onPermission }) {
        yield { type: "message", text: toolName };
        const asked = { toolCallId: "c1", toolName: "wipe", input: {} };
        if ((await onPermission(asked)) !== "park") yield { type: "done" };
      };
      const { post, get } = await serveStored(cautious, { configuration: { webhooks, store } });
      const { runId } = await bodyOf<{ runId: string }>(
        await post("/run", {
          ...asking,
          permissions: { default: "ask" },
          webhook: { url: receiver.url, events: ["interaction.expired"] },
        }),
      );
      const seen = async () => {
        const { status } = await get(`/runs/${runId}`);
        return [status, ...receiver.received.map(({ message }) => message.type)];
      };
      expect(await seen()).toEqual([200]);
      await expect.poll(seen, slowly).toEqual([404, "interaction.expired"]);
    },
  );

  it("is sent for a queued run that never began", async () => {
    const receiver = await webhookReceiver(() => {});
    const { script } = counting();
    const configuration = { webhooks, limits: { concurrentRuns: 1 } };
    const { post } = await serveStored(script, { configuration });
    const detached = { prefer: "respond-async" };
    await post("/run", asking, detached);
    const { runId } = await bodyOf<{ runId: string }>(
      await post("/run", { ...asking, webhook: { url: receiver.url } }, detached),
    );
    await post(`/runs/${runId}/cancel`, {});
    await expect
      .poll(() => receiver.received.map(({ message }) => message))
      .toMatchObject([{ type: "run.finished", data: { runId, stopReason: "cancelled" } }]);
  });

  it("isn't sent to an address that the operator forbids, and follows no redirect", async () => {
    const receiver = await webhookReceiver((response, path) => {
      response.statusCode = path === "/gone" ? 410 : path === "/moved" ? 307 : 204;
      response.setHeader("location", "/elsewhere");
    });
    const deliver = async (privateHosts: "allow" | "refuse", url: string) => {
      const { post, get } = await serveStored(saying("Hello."), {
        configuration: { webhooks: { ...webhooks, privateHosts, attempts: 2 } },
      });
      const answer = await post("/run", { ...asking, webhook: { url } });
      const { runId, failure } = await bodyOf<Refused & { runId: string }>(answer);
      if (answer.status !== 200) return failure.issues;
      const info = async () => bodyOf<Info>(await get(`/runs/${runId}`));
      await expect.poll(async () => (await info()).deliveries[0]?.state, slowly).not.toBe("pending");
      return (await info()).deliveries;
    };
    const named = `http://localhost:${receiver.port}`;
    expect(await deliver("refuse", receiver.url)).toMatchObject([{ path: "webhook.url" }]);
    expect(await deliver("refuse", named)).toMatchObject([
      { state: "failed", attempts: 1, error: expect.stringContaining("refuses its address") },
    ]);
    expect(receiver.received).toEqual([]);
    expect(await deliver("allow", named)).toMatchObject([{ state: "delivered" }]);
    expect(await deliver("allow", `${receiver.url}/gone`)).toMatchObject([
      { state: "failed", attempts: 1, status: 410 },
    ]);
    expect(await deliver("allow", `${receiver.url}/moved`)).toMatchObject([
      { state: "failed", attempts: 2, status: 307, error: expect.stringContaining("redirect") },
    ]);
    expect(receiver.received).toHaveLength(4);
  });

  it("is signed with its project's secret, and refused without a secret or a store", async () => {
    const receiver = await webhookReceiver(() => {});
    const [one, two] = [newToken(), newToken()];
    const ofProject = newSecret();
    const tokens = [
      { token: one.hash, project: "one", webhookSecret: ofProject },
      { token: two.hash, project: "two" },
    ];
    const file = await databaseFile();
    const plugins = [scriptedAgent(saying("Hello.")), { use: sqlite, config: { file } }];
    const served = await serveScript(saying(), { configuration: { webhooks, tokens, plugins } });
    const request = { ...asking, webhook: { url: receiver.url } };
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    expect((await served.post("/run", request, bearer(one.token))).status).toBe(200);
    await expect.poll(() => receiver.received, slowly).toHaveLength(1);
    const [{ body, headers } = { body: "", headers: {} }] = receiver.received;
    const verify = (key: string) => () =>
      new Webhook(key).verify(body, { ...headers } as Record<string, string>);
    expect(verify(ofProject)()).toMatchObject({ data: { projectId: "one" } });
    expect(verify(secret)).toThrow(/signature/);
    const issues = async (answer: Response) => (await bodyOf<Refused>(answer)).failure.issues;
    const path = "webhook";
    expect(await issues(await served.post("/run", request, bearer(two.token)))).toEqual([
      { path, message: expect.stringContaining("webhookSecret") },
    ]);
    const without = await serveStored(saying());
    expect(await issues(await without.post("/run", request))).toEqual([
      { path, message: expect.stringContaining("AMBIT_WEBHOOK_SECRET") },
    ]);
    const storeless = await serveScript(saying(), { configuration: { webhooks } });
    expect(await issues(await storeless.post("/run", request))).toEqual([
      { path, message: expect.stringContaining("needs a store") },
    ]);
  });
});
