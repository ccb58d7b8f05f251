import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Script } from "../support/scripted-agent.js";
import { asking, hasRoom, linesOf, serveScript } from "../support/server.js";

const total = 100_000;
const text = "x".repeat(1_000);

/** Says much more than a connection's buffers hold, and counts how much of it was taken. */
function talkative() {
  const said = { count: 0 };
  const script: Script = async function* () {
    for (; said.count < total; said.count += 1) yield { type: "message", text };
    yield { type: "done", stopReason: "end_turn" };
  };
  return { said, script };
}

/** A caller that begins a run, and doesn't read its answer. */
function callWithoutReading(url: string) {
  const sent = request(`${url}/run`, { method: "POST", headers: { accept: "application/x-ndjson" } });
  sent.on("error", () => {
    // The server may cut the connection: that is what these tests provoke.
  });
  const response = new Promise<import("node:http").IncomingMessage>((resolve) =>
    sent.once("response", resolve),
  );
  sent.end(JSON.stringify(asking));
  onTestFinished(() => void sent.destroy());
  return { sent, response };
}

/** How much was said once nothing more is taken. */
async function stalled(said: { readonly count: number }): Promise<number> {
  for (let before = -1; before !== said.count || before === 0; await sleep(200)) before = said.count;
  return said.count;
}

describe("a caller that doesn't read", () => {
  it("stops the agent instead of filling memory, and gets everything when it reads", async () => {
    const { said, script } = talkative();
    const { url } = await serveScript(script);
    const response = await callWithoutReading(url).response;
    expect(await stalled(said)).toBeLessThan(total / 2);
    let text = "";
    for await (const chunk of response) text += chunk;
    expect(said.count).toBe(total);
    expect(linesOf(text)).toHaveLength(total + 3);
  });

  it("doesn't keep the server from closing, nor its run from ending", async () => {
    const { said, script } = talkative();
    const { url, server, runner } = await serveScript(script, { configuration: { server: { drainMs: 1 } } });
    await callWithoutReading(url).response;
    await stalled(said);
    await server.close();
    expect(() => runner.cancel("any")).toThrow("no run");
  });

  it("doesn't exceed its run's time limit", async () => {
    const { said, script } = talkative();
    const { url, runner } = await serveScript(script, {
      configuration: { limits: { runTimeoutMs: 1_000, concurrentRuns: 1 } },
    });
    await callWithoutReading(url).response;
    await stalled(said);
    await expect.poll(() => hasRoom(runner), { timeout: 10_000 }).toBe(true);
  });
});
