import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Script, saying } from "../support/scripted-agent.js";
import { asking, bodyOf, linesOf, recordsOf } from "../support/server.js";
import { counting, serveInMemory } from "../support/stored-server.js";

const mebibyte = 1_048_576;
const text = "x".repeat(10_000);
const detached = { prefer: "respond-async" };

/** Says 100 MB, as fast as it is let, and counts what was taken. */
function talkative(total = 10_000) {
  const said = { count: 0 };
  const script: Script = async function* () {
    for (; said.count < total; said.count += 1) yield { type: "message", text: `${said.count} ${text}` };
    yield { type: "done", stopReason: "end_turn" };
  };
  return { said, script, total };
}

interface Info {
  readonly runId: string;
  readonly state: string;
}

/** Bytes in use after a collection. */
function used(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** A reader that doesn't read, or a caller. */
async function unread(url: string, body?: string): Promise<IncomingMessage> {
  const sent = request(url, { method: body === undefined ? "GET" : "POST" });
  sent.on("error", () => undefined);
  onTestFinished(() => void sent.destroy());
  sent.end(body);
  const [response]: IncomingMessage[] = await once(sent, "response");
  if (response === undefined) throw new Error("no response");
  response.on("error", () => undefined);
  return response;
}

/** The count once nothing more is taken. */
async function stalled(said: { readonly count: number }): Promise<number> {
  for (let before = -1; before !== said.count || before === 0; await sleep(200)) before = said.count;
  return said.count;
}

describe("runs in memory", () => {
  it("that nobody reads keep the latest of their events; earlier ones are refused by name", async () => {
    const { said, script, total } = talkative();
    const configuration = { memory: { runMiB: 1 }, limits: { resultCharacters: 1_000 } };
    const { post, get } = await serveInMemory(script, { configuration });
    const { runId } = await bodyOf<Info>(await post("/run", asking, detached));
    const before = used();
    await expect
      .poll(async () => (await bodyOf<Info>(await get(`/runs/${runId}`))).state, { timeout: 50_000 })
      .toBe("ended");
    expect(said.count).toBe(total);
    expect(used() - before).toBeLessThan(10 * mebibyte);
    const refused = await get(`/runs/${runId}/events`);
    expect(refused.status).toBe(404);
    const { error } = await bodyOf<{ readonly error: string }>(refused);
    const after = Number(/after=(\d+)/.exec(error)?.[1]);
    expect(after).toBeGreaterThan(total - 200);
    const records = await recordsOf(await get(`/runs/${runId}/events?after=${after}`));
    // The run's first event, the messages, and `done`.
    expect(records).toHaveLength(1 + total + 1 - after + 1);
    expect(records.at(-1)).toMatchObject({ kind: "result", result: { ok: true } });
  });

  it("wait for their first reader; a later one that doesn't read keeps nobody waiting, and is told", async () => {
    const { said, script, total } = talkative();
    const configuration = { memory: { runMiB: 1 }, limits: { resultCharacters: 1_000 } };
    const { url } = await serveInMemory(script, { configuration });
    const first = await unread(`${url}/stream`, JSON.stringify(asking));
    const events = `${url}/runs/${first.headers["x-ambit-run-id"]}/events`;
    const stalledAt = await stalled(said);
    expect(stalledAt).toBeLessThan(total);
    const slow = await unread(`${events}?after=${stalledAt}`);
    let text = "";
    for await (const chunk of first) text += chunk;
    expect(said.count).toBe(total);
    expect(linesOf(text)).toHaveLength(total + 3);
    // What it hasn't read is gone: its connection ends without a result.
    await expect(read(slow)).rejects.toThrow("aborted");
  });

  it("keep an open question while runs without one can go", async () => {
    // Room for three runs of 200,000 characters, which the result has twice again.
    const configuration = { memory: { maxMiB: 2 } };
    const script: Script = async function* ({ onPermission }) {
      yield { type: "message", text: "x".repeat(200_000) };
      const verdict = await onPermission({ toolCallId: "c1", toolName: "wipe", input: {} });
      if (verdict === "park") return;
      yield { type: "done", stopReason: "end_turn" };
    };
    const { post, get } = await serveInMemory(script, { configuration });
    const asks = { ...asking, permissions: { default: "ask" } };
    const runs = async () =>
      (await bodyOf<{ readonly runs: Info[] }>(await get("/runs"))).runs.map(({ runId }) => runId);
    await post("/run", { ...asks, runId: "paused" });
    const allowed = { ...asking, permissions: { default: "allow" } };
    for (let count = 0; count < 6; count += 1) await post("/run", { ...allowed, runId: `run-${count}` });
    await expect.poll(runs).toEqual(["run-5", "run-4", "paused"]);
    const { interactions } = await bodyOf<{ readonly interactions: unknown[] }>(
      await get("/interactions?state=open"),
    );
    expect(interactions).toMatchObject([{ runId: "paused" }]);
    // The bound holds where all runs have one.
    for (let count = 0; count < 4; count += 1) await post("/run", { ...asks, runId: `asks-${count}` });
    await expect.poll(runs).toEqual(["asks-3", "asks-2", "asks-1"]);
  });

  it("are deleted when all together hold too much: the first of the project that has the most", async () => {
    const configuration = { memory: { maxMiB: 1 } };
    const { post, get } = await serveInMemory(saying(text, text, text), { configuration });
    const run = (projectId: string) => post("/run", { ...asking, projectId });
    expect((await run("quiet")).status).toBe(200);
    for (let count = 0; count < 40; count += 1) await run("busy");
    const list = async () =>
      (await bodyOf<{ readonly runs: readonly { readonly projectId: string }[] }>(await get("/runs"))).runs;
    await expect.poll(async () => (await list()).length).toBeLessThan(35);
    const runs = await list();
    expect(runs.filter(({ projectId }) => projectId === "quiet")).toHaveLength(1);
    expect(runs.length).toBeGreaterThan(5);
  });

  it("count the answers that wait for the next turn", async () => {
    const configuration = { memory: { maxMiB: 2 } };
    const script: Script = async function* ({ prompt }) {
      const id = JSON.stringify(prompt).includes("second") ? "second" : "first";
      yield { type: "interaction_request", id, kind: "user_input", payload: {} };
      yield { type: "done", stopReason: "paused" };
    };
    const { post, get } = await serveInMemory(script, { configuration });
    for (const runId of ["first", "second"])
      await post("/run", { messages: [{ role: "user", content: runId }], runId });
    const answer = (runId: string, length: number) =>
      post(`/runs/${runId}/interactions/${runId}`, { output: "x".repeat(length) });
    const status = async (runId: string) => (await get(`/runs/${runId}`)).status;
    expect((await answer("first", 1_000_000)).status).toBe(200);
    expect(await status("first")).toBe(200);
    expect((await answer("second", 1_000_000)).status).toBe(200);
    // As after any other run that is too much: the one that ended first goes.
    await expect.poll(() => status("first")).toBe(404);
    expect(await status("second")).toBe(200);
  });

  it("refuse an answer that takes more memory than all may", async () => {
    const configuration = { memory: { maxMiB: 1 } };
    const script: Script = async function* () {
      yield { type: "interaction_request", id: "one", kind: "user_input", payload: {} };
      yield { type: "done", stopReason: "paused" };
    };
    const { post } = await serveInMemory(script, { configuration });
    await post("/run", { ...asking, runId: "run" });
    const refused = await post("/runs/run/interactions/one", { output: "x".repeat(1_000_000) });
    expect(refused.status).toBe(429);
    expect(await refused.text()).toContain("send a shorter one");
  });

  it("that wait for a place hold no more memory than all may", async () => {
    const configuration = { memory: { maxMiB: 1 }, limits: { concurrentRuns: 1 } };
    const { script } = counting();
    const { post } = await serveInMemory(script, { configuration });
    const large = { messages: [{ role: "user", content: "x".repeat(500_000) }] };
    const statuses: number[] = [];
    for (let count = 0; count < 4; count += 1) statuses.push((await post("/run", large, detached)).status);
    expect(statuses).toEqual([202, 202, 429, 429]);
  });
});

async function read(response: IncomingMessage): Promise<number> {
  let length = 0;
  for await (const chunk of response) length += String(chunk).length;
  return length;
}
