import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it, onTestFinished } from "vitest";
import { saying } from "../support/scripted-agent.js";
import { asking } from "../support/server.js";
import { serveStored } from "../support/stored-server.js";

const words = "x".repeat(60_000);
const long = saying(...Array.from({ length: 150 }, () => words));

/** A reader that never reads. Resolves with its response. */
async function unread(url: string, path: string): Promise<IncomingMessage> {
  const sent = request(`${url}${path}`);
  sent.on("error", () => {
    // The server may end it: that is what these tests provoke.
  });
  onTestFinished(() => void sent.destroy());
  sent.end();
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
