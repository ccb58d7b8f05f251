import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { endTurn, fakeAgent } from "../support/fake-agent.js";
import { failureOf, turnOf } from "../support/runs.js";

const noise = { sessionUpdate: "telepathy", text: "x".repeat(100_000) };

describe("an agent that sends without end", () => {
  it("is ended soon after a cancel, whoever reads its events", async () => {
    let sent = 0;
    const { start } = fakeAgent({
      onPrompt: async ({ update, signal }) => {
        await update({ sessionUpdate: "telepathy" });
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        // As from a pipe: what an agent sends arrives in a turn of the event loop.
        for (; sent < 1_000; sent += 1) await update(noise).then(() => nextTurn());
        return endTurn;
      },
      limits: { cancelMs: 60_000, messageCharacters: 500_000 },
    });
    const { agent } = await start();
    const abort = new AbortController();
    const events = agent.prompt(turnOf({ signal: abort.signal }))[Symbol.asyncIterator]();
    expect(await events.next()).toMatchObject({ value: { name: "acp.telepathy" } });
    abort.abort();
    await expect.poll(() => agent.ended(), { timeout: 20_000, interval: 1 }).toBe(true);
    expect(sent).toBeGreaterThan(9);
    expect(sent).toBeLessThan(100);
    let last: unknown;
    for (let next = await events.next(); next.done !== true; next = await events.next()) last = next.value;
    expect(last).toEqual({ type: "done", stopReason: "cancelled" });
  });

  it("fails its run if it doesn't read the answers to its requests", async () => {
    let sent = 0;
    const { start } = fakeAgent({
      onPrompt: async ({ line }) => {
        for (; sent < 5_000; sent += 1)
          await line(
            JSON.stringify({ jsonrpc: "2.0", id: `r${sent}`, method: "no/such/method", params: {} }),
          );
        return endTurn;
      },
      readsAnswers: false,
    });
    const { agent } = await start();
    const { error } = await failureOf(agent, turnOf());
    expect(error).toMatchObject({
      message: expect.stringContaining("sent more than 1,000 requests without reading their answers"),
    });
    expect(sent).toBeLessThan(2_000);
  });
});
