import { StoreFailed } from "@ambit/core";
import type { SessionUse } from "@ambit/core/plugin";
import { FakeGateway, fakeUse } from "@ambit/fakes/gateway";
import { done, type Script, untilAborted } from "@ambit/fakes/harness";
import { describe, expect, it } from "vitest";
import type { SessionKeeper } from "../../src/session/session.js";
import { createWorld, eventsOf, recordsOf, type Told } from "../fakes/world.js";
import { world } from "./routed-world.js";

describe("a budget", () => {
  it.each([
    { budget: { requests: 2 }, words: "2 of 2 requests" },
    { budget: { tokens: 150 }, words: "200 of 150 tokens" },
    { budget: { usd: 0.015 }, words: "0.02 of 0.015 usd" },
    { budget: { requests: 9, session: { tokens: 199 } }, words: "200 of 199 tokens" },
  ])("of $budget ends the run with what was said until then", async ({ budget, words }) => {
    const { run, gateway } = await world(5);
    const { result, failure } = await run({ budget });
    expect(result).toMatchObject({ ok: false, failure: { code: "budget_exceeded", retryable: false } });
    expect(result.error).toBe(`The run's budget is used up: ${words}.`);
    expect(failure?.status).toBe(402);
    expect(result.output).toContain("answered 1");
    expect(result.usage).toEqual({ input: 120, cached: 0, output: 80, total: 200, cost: 0.02 });
    expect(gateway.opened).toHaveLength(1);
  });

  it("that is just sufficient ends nothing", async () => {
    const { run } = await world(2);
    const { result } = await run({ budget: { requests: 2, tokens: 200, usd: 0.02 } });
    expect(result).toMatchObject({ ok: true, usage: { cost: 0.02, total: 200 } });
  });

  it("of a session counts all its runs, including one that exceeded it, and no other session's", async () => {
    const { run } = await world(1);
    const body = { sessionId: "s", budget: { session: { tokens: 250 } } };
    expect((await run(body)).result.ok).toBe(true);
    expect((await run(body)).result.ok).toBe(true);
    for (const _again of [1, 2]) expect((await run(body)).result.failure?.code).toBe("budget_exceeded");
    expect((await run({ ...body, sessionId: "other" })).result.ok).toBe(true);
    expect((await run({ ...body, projectId: "other" })).result.ok).toBe(true);
  });

  it("of a session includes its usage on another runner, as stored when that one died", async () => {
    let kept: SessionUse | undefined;
    const keeper: SessionKeeper = {
      holding: () => undefined,
      keep: async () => true,
      use: async (_name, use) => {
        kept = use.requests > (kept?.requests ?? 0) || use.input > (kept?.input ?? 0) ? use : (kept ?? use);
        return kept;
      },
      closed: async () => {},
      onClosed: () => {},
    };
    const [one, two, three, alone] = [await world(2), await world(1), await world(1), await world(1)];
    for (const { runner } of [one, two, three]) runner.keepSessionsIn(keeper);
    const body = { sessionId: "s", budget: { session: { tokens: 250 } } };
    expect((await one.run(body)).result.ok).toBe(true);
    expect(kept).toMatchObject({ requests: 2, input: 120, output: 80, usd: 0.02, isPriced: true });
    // Without what is kept, it begins at nothing.
    expect((await alone.run(body)).result.ok).toBe(true);
    expect((await two.run(body)).result).toMatchObject({
      failure: { code: "budget_exceeded" },
      error: "The run's budget is used up: 300 of 250 tokens.",
    });
    // Known before the first request, which isn't sent.
    const { result } = await three.run(body);
    expect([result.failure?.code, result.usage]).toEqual(["budget_exceeded", undefined]);
  });

  it("of a session isn't spent if its count can't be stored", async () => {
    const { run, runner } = await world(1);
    const refuse = () => Promise.reject(new StoreFailed("The store is away."));
    runner.keepSessionsIn({
      holding: () => undefined,
      keep: async () => true,
      use: refuse,
      closed: async () => {},
      onClosed: () => {},
    });
    const { result } = await run({ sessionId: "s", budget: { session: { tokens: 250 } } });
    expect(result).toMatchObject({ ok: false, failure: { code: "store_failed" } });
    expect(result.usage).toBeUndefined();
  });

  it("delays simultaneous requests whose usage isn't known yet", async () => {
    const gateway = new FakeGateway();
    const script: Script = async function* ({ signal }) {
      const all = Array.from({ length: 16 }, () =>
        gateway.call({ usage: { output: 100 }, signal, until: Promise.resolve() }),
      );
      yield { type: "message", text: "asked" };
      await untilAborted(signal, Promise.allSettled(all));
      yield done;
    };
    const { run } = await world(0, { gateway, script });
    const { result } = await run({ budget: { tokens: 100 } });
    expect(result.failure?.code).toBe("budget_exceeded");
    expect(result.usage?.output).toBeLessThanOrEqual(400);
  });

  it.each([
    { maxOutput: 100, exceeds: false },
    { maxOutput: undefined, exceeds: true },
  ])("counts what open requests may use at most ($maxOutput)", async ({ maxOutput, exceeds }) => {
    const gateway = new FakeGateway();
    const script: Script = async function* ({ signal }) {
      const asked = { usage: { output: 60 }, signal, until: Promise.resolve() };
      const all = Array.from({ length: 4 }, () =>
        gateway.call(maxOutput === undefined ? asked : { ...asked, maxOutput }),
      );
      yield { type: "message", text: "asked" };
      await untilAborted(signal, Promise.allSettled(all));
      yield done;
    };
    const { run } = await world(0, { gateway, script });
    const { result } = await run({ budget: { tokens: 100 } });
    expect(result.failure?.code).toBe("budget_exceeded");
    // One at a time, the second is the last.
    if (exceeds) expect(result.usage?.output).toBeGreaterThan(120);
    else expect(result.usage?.output).toBe(120);
  });

  it("bounds the requests that wait for others to end", async () => {
    const gateway = new FakeGateway();
    const refused: unknown[] = [];
    const script: Script = async function* ({ signal }) {
      const others = Promise.withResolvers<void>();
      const all = Array.from({ length: 4 + 256 + 1 }, async () => {
        const admission = await gateway.call({ signal, until: others.promise });
        if (!admission.allowed) refused.push(admission.status);
      });
      yield { type: "message", text: "asked" };
      await expect.poll(() => refused).toEqual([429]);
      others.resolve();
      await untilAborted(signal, Promise.all(all));
      yield done;
    };
    const { run } = await world(0, { gateway, script });
    expect((await run({ budget: { requests: 1_000 } })).result.ok).toBe(true);
    expect(refused).toEqual([429]);
  });

  it("is refused without a gateway, without a price, and without a limit", async () => {
    const without = await createWorld({ harness: { model: () => fakeUse } });
    await expect(without.admit({ budget: { requests: 1 } })).rejects.toMatchObject({
      issues: [{ path: "budget", message: expect.stringContaining("load @ambit/model-route") }],
    });
    const { admit, gateway } = await world(1);
    gateway.noPrice.push("m-1");
    await expect(admit({ budget: { usd: 1, session: { usd: 2 } } })).rejects.toMatchObject({
      issues: [
        { path: "budget.usd", message: expect.stringContaining("m-1") },
        { path: "budget.session.usd", message: expect.stringContaining("set prices") },
      ],
    });
    for (const budget of [{}, { onExceeded: "ask" }, { usd: 0 }, { tokens: 1.5 }, { session: {} }]) {
      await expect(admit({ budget })).rejects.toMatchObject({ code: "request_invalid" });
    }
  });
});

describe("a budget with onExceeded 'ask'", () => {
  const budget = { requests: 1, onExceeded: "ask" };

  it("pauses the run, and an approval in the next request continues it", async () => {
    const { run } = await world(2);
    const first = await run({ sessionId: "s", budget: { ...budget, session: { requests: 1 } } });
    expect(first.result).toMatchObject({ ok: true, stopReason: "paused" });
    const [asked, ...more] = eventsOf(first, "interaction_request");
    expect(more).toEqual([]);
    expect(asked).toMatchObject({
      kind: "user_approval",
      payload: { toolName: "budget", used: "1 of 1 requests" },
    });
    const answer = (approved: boolean) => ({
      sessionId: "s",
      budget: { ...budget, session: { requests: 1 } },
      messages: [
        { role: "user", content: "go" },
        { role: "tool", content: [{ type: "tool_result", toolCallId: asked?.id, output: { approved } }] },
      ],
    });
    const second = await run(answer(true));
    expect(eventsOf(second, "interaction_response")).toMatchObject([
      { id: asked?.id, payload: { approved: true } },
    ]);
    expect(second.result.output).toContain("answered 1");
    // The same answer counts once.
    const third = await run(answer(true));
    expect(third.result.stopReason).toBe("paused");
  });

  it.each([true, false])(
    "accepts a live answer: continues with an approval (%s), and ends with a denial",
    async (approved) => {
      const made = await world(2);
      const run = await made.admit({ budget, interactions: { waitMs: 20_000 } });
      let result: Told["result"] | undefined;
      for await (const record of recordsOf(run)) {
        if (record.kind === "result") result = record.result;
        else if (record.event.type === "interaction_request")
          made.runner.answer(run.id, record.event.id, { approved });
      }
      if (approved) expect(result).toMatchObject({ ok: true, output: expect.stringContaining("answered 2") });
      else expect(result?.failure?.code).toBe("budget_exceeded");
    },
  );
});
