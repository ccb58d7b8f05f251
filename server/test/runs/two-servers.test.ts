import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { saying } from "../support/scripted-agent.js";
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
