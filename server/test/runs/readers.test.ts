import { request } from "node:http";
import { describe, expect, it } from "vitest";
import type { Script } from "../support/scripted-agent.js";
import { asking, bodyOf } from "../support/server.js";
import { serveStored } from "../support/stored-server.js";

const events = 2_000;
const text = "x".repeat(5_000);

/** Says 10 MB, as fast as it is let. */
const talkative: Script = async function* () {
  for (let index = 1; index <= events; index += 1) yield { type: "message", text: `${index} ${text}` };
  yield { type: "done", stopReason: "end_turn" };
};

/** A reader that takes nothing after the first bytes, until it is told to. */
function lazyReader(url: string): Promise<{ read(): Promise<string> }> {
  return new Promise((resolve, reject) => {
    request(url, (response) => {
      response.once("readable", () => {
        resolve({
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
      .end();
  });
}

describe("a slow reader", () => {
  it("slows neither the run nor another reader, and finally gets everything", async () => {
    const { post, get, url } = await serveStored(talkative);
    const { runId } = await bodyOf<{ runId: string }>(
      await post("/run", asking, { prefer: "respond-async" }),
    );
    const slow = await lazyReader(`${url}/runs/${runId}/events`);
    const quick = await (await get(`/runs/${runId}/events`)).text();
    expect(await (await get(`/runs/${runId}`)).json()).toMatchObject({ state: "ended" });
    expect(quick.match(/"type":"message"/g)).toHaveLength(events);
    expect(await slow.read()).toBe(quick);
  });

  it("of a run with too many events: the run ends, and its log is complete up to there", async () => {
    const configuration = { store: { runMiB: 1 } };
    const { post, get } = await serveStored(talkative, { configuration });
    const answer = await post("/run", asking, { accept: "application/x-ndjson" });
    const records = (await answer.text()).trim().split("\n");
    expect(JSON.parse(records.at(-1) ?? "")).toMatchObject({ result: { failure: { code: "at_capacity" } } });
    const runId = answer.headers.get("x-ambit-run-id") ?? "";
    expect((await (await get(`/runs/${runId}/events`)).text()).trim().split("\n")).toEqual(records);
  });
});
