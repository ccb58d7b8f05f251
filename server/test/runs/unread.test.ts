import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { Readable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import blobsFolder from "@ambit/blobs-folder";
import agenta from "@ambit/compat-agenta";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Script, saying, waiting } from "../support/scripted-agent.js";
import { asking } from "../support/server.js";
import { databaseFile, serveStored } from "../support/stored-server.js";

const words = "x".repeat(60_000);
const long = saying(...Array.from({ length: 150 }, () => words));

/** Says a lot at once, and asks as much. */
const large: Script = async function* () {
  // A result has it twice, and what commands did is kept up to 16 MiB.
  yield { type: "message", text: "x".repeat(7_000_000) };
  const payload = { toolCallId: "ask", toolName: "note", input: { text: "x".repeat(12_000_000) } };
  yield { type: "interaction_request", id: "ask", kind: "user_approval", payload };
  yield { type: "done", stopReason: "paused" };
};

/** A reader that never reads. Resolves with its response. */
async function unread(url: string, path: string, body?: string): Promise<IncomingMessage> {
  const sent = request(`${url}${path}`, { method: body === undefined ? "GET" : "POST" });
  sent.on("error", () => {
    // The server may end it: that is what these tests provoke.
  });
  onTestFinished(() => void sent.destroy());
  sent.end(body);
  const [response]: IncomingMessage[] = await once(sent, "response");
  if (response === undefined) throw new Error("no response");
  response.on("error", () => undefined);
  return response;
}

describe("readers that don't read", () => {
  it("are limited per run and per project; the run's own caller, and others, are served", async () => {
    const { url, post, get } = await serveStored(long, {
      configuration: { server: { maxReadersPerRun: 3, maxReadersPerProject: 4 } },
    });
    const one = await runIdOf(await post("/run", { ...asking, runId: "one" }));
    const two = await runIdOf(await post("/run", { ...asking, runId: "two" }));
    const kept = [];
    for (const id of [one, one, one]) kept.push(await unread(url, `/runs/${id}/events`));
    const refused = await get(`/runs/${one}/events`);
    expect(refused.status).toBe(429);
    expect(await refused.text()).toContain("server.maxReadersPerRun");
    kept.push(await unread(url, `/runs/${two}/events`));
    expect(await (await get(`/runs/${two}/events`)).text()).toContain("server.maxReadersPerProject");
    expect((await post("/run", { ...asking, runId: "three" })).status).toBe(200);
    for (const each of kept) each.destroy();
    await expect.poll(async () => (await get(`/runs/${one}/events?after=149`)).status).toBe(200);
  });

  it("make room for others, the oldest first, where a relay that is gone keeps their connections", async () => {
    const { url, post, get } = await serveStored(waiting, {
      configuration: { server: { maxReadersPerRun: 2, minReadingMs: 1 } },
    });
    await post("/run", { ...asking, runId: "quiet" }, { prefer: "respond-async" });
    // As of a relay that has stopped: they never end, and a quiet run writes nothing that they could leave unread.
    for (let count = 0; count < 2; count += 1)
      expect((await unread(url, "/runs/quiet/events")).statusCode).toBe(200);
    const leave = new AbortController();
    for (let count = 0; count < 3; count += 1) {
      const response = await get("/runs/quiet/events");
      expect(response.status).toBe(200);
      leave.signal.addEventListener("abort", () => void response.body?.cancel());
    }
    leave.abort();
    expect((await post("/runs/quiet/cancel", {})).status).toBe(200);
  });

  it("hold little more than a page of the log each", { timeout: 120_000 }, async () => {
    const { url, post, get } = await serveStored(long, {
      configuration: { server: { maxReadersPerRun: 30 } },
    });
    const id = await runIdOf(await post("/run", asking));
    const before = used();
    // A page may be one chunk of half a million characters, and the connection copies a part.
    for (let count = 0; count < 30; count += 1)
      expect((await unread(url, `/runs/${id}/events`)).statusCode).toBe(200);
    expect(used() - before).toBeLessThan(30 * 1_000_000);
    expect((await get("/health")).status).toBe(200);
    expect((await post("/run", asking)).status).toBe(200);
  });

  it("are ended after the write deadline, and those that wait for a quiet run are not", {
    timeout: 60_000,
  }, async () => {
    const { url, post, get } = await serveStored(long, {
      configuration: { server: { writeTimeoutMs: 300, maxReadersPerRun: 1 } },
    });
    const id = await runIdOf(await post("/run", asking));
    await unread(url, `/runs/${id}/events`);
    await expect
      .poll(async () => (await get(`/runs/${id}/events?after=149`)).status, { timeout: 30_000 })
      .toBe(200);
  });

  it.each([
    ["a run with its result", "/runs/large", undefined],
    ["the questions of runs", "/interactions", undefined],
    ["the list of a run's files", "/runs/large/files", undefined],
    [
      "what a command did",
      "/stream",
      JSON.stringify({ ...asking, controlCommandId: "once", runId: "another" }),
    ],
  ])("displace only each other where they ask for %s", { timeout: 60_000 }, async (_what, path, body) => {
    const folder = await databaseFile();
    // A command's id is a dialect's.
    const plugins = [{ use: blobsFolder, config: { folder } }, agenta];
    const { url, post, files } = await serveStored(large, { plugins });
    const file = { path: "x".repeat(12_000_000), name: "file-0", size: 0, sha256: "0".repeat(64) };
    const manifest = JSON.stringify({ version: 1, createdAt: 0, files: [file] });
    await (await files.blobs()).put("large", "manifest", Readable.from([Buffer.from(manifest)]));
    const asked = { ...asking, controlCommandId: "once", runId: "large" };
    expect((await post("/run", asked)).status).toBe(200);
    const kept = [];
    for (let count = 0; count < 6; count += 1) {
      const response = await unread(url, path, body);
      await once(response, "readable");
      kept.push(response);
    }
    const closed = kept.map((response) => new Promise((resolve) => response.resume().once("close", resolve)));
    await Promise.all(closed);
    expect(kept.map(({ complete }) => complete)).toMatchObject({ 0: false, 5: true });
  });

  async function runIdOf(response: Response): Promise<string> {
    expect(response.status).toBe(200);
    const id = response.headers.get("x-ambit-run-id") ?? "";
    await response.arrayBuffer();
    return id;
  }
});

/** Bytes in use after a collection: what was read and dropped doesn't count. */
function used(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
