import { request } from "node:http";
import { describe, expect, it } from "vitest";
import { type Script, waiting } from "../support/scripted-agent.js";
import { asking, linesOf } from "../support/server.js";
import { serveStored } from "../support/stored-server.js";

const events = 2_000;
const text = "x".repeat(5_000);

/** Says 10 MB, as fast as it is let. */
const talkative: Script = async function* () {
  for (let index = 1; index <= events; index += 1) yield { type: "message", text: `${index} ${text}` };
  yield { type: "done", stopReason: "end_turn" };
};

interface LazyReader {
  readonly runId: string;
  read(): Promise<string>;
}

/** Begins a run, and reads nothing after the first bytes until the test says so. */
function lazyReader(url: string, body: string): Promise<LazyReader> {
  const headers = { accept: "application/x-ndjson", "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    request(url, { method: "POST", headers }, (response) => {
      response.once("readable", () => {
        resolve({
          runId: String(response.headers["x-ambit-run-id"]),
          read: async () => {
            const parts: string[] = [];
            response.setEncoding("utf8");
            for await (const part of response) parts.push(part);
            return parts.join("");
          },
        });
      });
    })
      .once("error", reject)
      .end(body);
  });
}

describe("a slow reader", () => {
  it("slows neither its own run nor another reader, and gets everything in the end", async () => {
    const { get, url } = await serveStored(talkative);
    const slow = await lazyReader(`${url}/run`, JSON.stringify(asking));
    const { runId } = slow;
    const quick = await (await get(`/runs/${runId}/events`)).text();
    expect(await (await get(`/runs/${runId}`)).json()).toMatchObject({ state: "ended" });
    expect(quick.match(/"type":"message"/g)).toHaveLength(events);
    expect(await slow.read()).toBe(quick);
  });

  it("of a run with too many events: the run ends, and its log is complete up to there", async () => {
    const configuration = { store: { runMiB: 1 } };
    const { post, get } = await serveStored(talkative, { configuration });
    const answer = await post("/run", asking, { accept: "application/x-ndjson" });
    const records = linesOf(await answer.text());
    expect(JSON.parse(records.at(-1) ?? "")).toMatchObject({ result: { failure: { code: "at_capacity" } } });
    const runId = answer.headers.get("x-ambit-run-id") ?? "";
    expect(linesOf(await (await get(`/runs/${runId}/events`)).text())).toEqual(records);
  });
});

it("HEAD of a run's events gets the headers while the run goes on", async () => {
  const { url, post, get } = await serveStored(waiting);
  await post("/run", { ...asking, runId: "quiet" }, { prefer: "respond-async" });
  const signal = AbortSignal.timeout(5_000);
  const response = await fetch(`${url}/runs/quiet/events`, { method: "HEAD", signal });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("application/x-ndjson");
  expect(await (await get("/runs/quiet")).json()).toMatchObject({ state: "running" });
});
