import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sqlite from "@ambit/store-sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { takeEnvironment } from "../../src/configuration/environment.js";
import { openApi } from "../../src/http/listen.js";
import { openAmbit } from "../../src/open.js";
import { type Script, saying, scriptedAgent } from "../support/scripted-agent.js";
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
    // A caller that asks again and again on a kept connection would never reach the next server.
    const last = await one.get("/health").then(
      ({ headers }) => headers.get("connection"),
      () => "gone",
    );
    expect(["close", "gone"]).toContain(last);
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

/** A process that serves itself alone, as `ambit acp` does. */
async function openAlone(script: Script, file: string) {
  const environment = takeEnvironment({ AMBIT_LOG_LEVEL: "silent" });
  const configuration = { plugins: [scriptedAgent(script), { use: sqlite, config: { file } }] };
  const api = await openApi(await openAmbit({ environment, configuration, logLevel: "silent" }));
  onTestFinished(() => api.close());
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    api.fetch(`http://localhost${path}`, { method: "POST", body: JSON.stringify(body), headers });
  return { post, get: (path: string) => api.fetch(`http://localhost${path}`) };
}

describe("processes without an address on one SQLite file", () => {
  it("leave each other their runs and sessions, and serve each other's logs", async () => {
    const file = await databaseFile();
    const { agent, script, proceed } = counting(1);
    const one = await openAlone(script, file);
    const { runId } = await bodyOf<{ runId: string }>(
      await one.post("/run", { ...asking, sessionId: "s" }, detached),
    );
    await expect.poll(() => agent.begun).toBe(1);
    const two = await openAlone(saying("Hello."), file);
    expect((await two.post("/run", { ...asking, sessionId: "s" })).status).toBe(409);
    const following = two.get(`/runs/${runId}/events`);
    proceed(1);
    expect((await recordsOf(await following)).at(-1)).toMatchObject({ kind: "result", result: { ok: true } });
  });

  it("begin nothing that a server has queued", async () => {
    const file = await databaseFile();
    const configuration = { limits: { concurrentRuns: 1 } };
    const server = await serveStored(counting(1).script, { file, configuration });
    await server.post("/run", asking, detached);
    const { runId: waiting } = await bodyOf<{ runId: string }>(await server.post("/run", asking, detached));
    const alone = counting(1);
    const { post, get } = await openAlone(alone.script, file);
    const inSession = { ...asking, sessionId: "s", whenBusy: "queue" };
    const first = post("/run", inSession);
    await expect.poll(() => alone.agent.begun).toBe(1);
    const second = post("/run", inSession);
    const listed = async () => (await bodyOf<{ runs: unknown[] }>(await get("/runs?sessionId=s"))).runs;
    await expect.poll(listed).toHaveLength(2);
    alone.proceed(2);
    for (const response of [await first, await second])
      expect(await response.json()).toMatchObject({ ok: true });
    expect(await (await get(`/runs/${waiting}`)).json()).toMatchObject({ state: "queued" });
  });
});

describe("servers on one store with different keys", () => {
  const keyFiles = async () => {
    const folder = await mkdtemp(join(tmpdir(), "ambit-keys-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const files = ["old", "new"].map((name) => join(folder, name));
    for (const file of files) await writeFile(file, `${file}${"k".repeat(32)}`, { mode: 0o600 });
    const [old = "", next = ""] = files;
    return { old, next };
  };
  const serving = (file: string, interactions: object) =>
    serveStored(saying("Hello."), { file, configuration: { interactions } });

  it("don't start beside each other, unless each can read what the other encrypts", async () => {
    const { old, next } = await keyFiles();
    const file = await databaseFile();
    const one = await serving(file, { keyFile: old });
    const refused = { where: "interactions.keyFile", message: expect.stringContaining("otherKeyFiles") };
    await expect(serving(file, { keyFile: next })).rejects.toMatchObject(refused);
    // The first one couldn't read what this one encrypts.
    await expect(serving(file, { keyFile: next, otherKeyFiles: [old] })).rejects.toMatchObject(refused);
    await one.server.close();
    const both = await serving(file, { keyFile: old, otherKeyFiles: [next] });
    const rolled = await serving(file, { keyFile: next, otherKeyFiles: [old] });
    const begun = await rolled.post("/run", { ...asking, runId: "rolled" });
    expect(await begun.json()).toMatchObject({ ok: true });
    expect((await both.get("/runs/rolled")).status).toBe(200);
  });
});
