import { ModelFailed } from "@ambit/core";
import { describe, expect, it } from "vitest";
import { type FakeAnswer, FakeGateway, fakeUse } from "../../../../core/test/fakes/gateway.js";
import { done, type Script, untilAborted } from "../../../../core/test/fakes/harness.js";
import { createWorld, eventsOf, type Told, type WorldOptions } from "../fakes/world.js";

/** Asks its model so many times, and says how often it was answered; ends when it is told to. */
const asks = (
  gateway: FakeGateway,
  times: number,
  answer: FakeAnswer = { usage: { input: 60, output: 40, cost: 0.01 } },
): Script =>
  async function* ({ signal }) {
    let answered = 0;
    for (let time = 0; time < times; time += 1) {
      const admission = await untilAborted(signal, gateway.call({ ...answer, signal }));
      if (signal.aborted) break;
      if (admission?.allowed === true) answered += 1;
      yield { type: "message", text: `answered ${answered}` };
    }
    yield done;
  };

async function world(times: number, options: WorldOptions & { readonly answer?: FakeAnswer } = {}) {
  const gateway = new FakeGateway();
  const made = await createWorld({
    gateway,
    script: asks(gateway, times, options.answer),
    harness: { model: () => fakeUse, visibleCredentials: () => ["MODEL_KEY"] },
    ...options,
  });
  return { ...made, gateway };
}

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

  it("that is just enough ends nothing", async () => {
    const { run } = await world(2);
    const { result } = await run({ budget: { requests: 2, tokens: 200, usd: 0.02 } });
    expect(result).toMatchObject({ ok: true, usage: { cost: 0.02, total: 200 } });
  });

  it("of a session counts all its runs, also after one that ended with it, and no other session's", async () => {
    const { run } = await world(1);
    const body = { sessionId: "s", budget: { session: { tokens: 250 } } };
    expect((await run(body)).result.ok).toBe(true);
    expect((await run(body)).result.ok).toBe(true);
    for (const _again of [1, 2]) expect((await run(body)).result.failure?.code).toBe("budget_exceeded");
    expect((await run({ ...body, sessionId: "other" })).result.ok).toBe(true);
    expect((await run({ ...body, projectId: "other" })).result.ok).toBe(true);
  });

  it("holds back requests at once, whose use isn't known yet", async () => {
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

  it("is refused where nothing counts, where nothing prices, and where it limits nothing", async () => {
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

describe("a budget that asks", () => {
  const budget = { requests: 1, onExceeded: "ask" };

  it("pauses the run, and a yes in the next request lets it go on", async () => {
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
    "takes a live answer: goes on with a yes (%s), and ends with a no",
    async (approved) => {
      const made = await world(2);
      const run = await made.admit({ budget, interactions: { waitMs: 20_000 } });
      let result: Told["result"] | undefined;
      for await (const record of run.records()) {
        if (record.kind === "result") result = record.result;
        else if (record.event.type === "interaction_request")
          made.runner.answer(run.id, record.event.id, { approved });
      }
      if (approved) expect(result).toMatchObject({ ok: true, output: expect.stringContaining("answered 2") });
      else expect(result?.failure?.code).toBe("budget_exceeded");
    },
  );
});

describe("what the gateway knows of the model", () => {
  const failure = { status: 429, retryable: true, message: "The model answered with 429: slow down" };

  it("an agent that ends its turn well although its model only failed hasn't succeeded", async () => {
    const { run } = await world(2, { answer: { failure } });
    const { result } = await run({});
    const told = { code: "model_failed", retryable: true, upstreamStatus: 429 };
    expect(result).toMatchObject({ ok: false, failure: told });
    expect(result.error).toBe("The model answered with 429: slow down.");
  });

  it("ends the run at the third request that fails in a row, whatever the agent would do next", async () => {
    const answers = [failure, failure, undefined, failure, failure, failure, failure];
    const gateway = new FakeGateway();
    let asked = 0;
    const script: Script = async function* ({ signal }) {
      for (const each of answers) {
        if (signal.aborted) break;
        await gateway.call(each === undefined ? {} : { failure: each });
        asked += 1;
      }
      // As an agent that waits before its next try: only the signal ends it.
      if (asked < answers.length) await untilAborted(signal, new Promise(() => {}));
      yield done;
    };
    const { result } = await (await world(0, { gateway, script })).run({});
    expect(result.failure).toEqual({ code: "model_failed", retryable: true, upstreamStatus: 429 });
    expect(asked).toBe(6);
  });

  it("gives an agent's vague failure its true status, and leaves one that isn't the model's", async () => {
    const failing = (gateway: FakeGateway, answer: FakeAnswer): Script =>
      async function* () {
        await gateway.call(answer);
        yield { type: "message", text: "hm" };
        throw new ModelFailed("Something went wrong.");
      };
    for (const [answer, words, upstreamStatus] of [
      [{ failure: { ...failure, status: 401, retryable: false } }, failure.message, 401],
      [{}, "Something went wrong", undefined],
    ] as const) {
      const gateway = new FakeGateway();
      const { run } = await world(0, { gateway, script: failing(gateway, answer) });
      const { result } = await run({});
      expect(result).toMatchObject({ ok: false, failure: { code: "model_failed", retryable: false } });
      expect(result.failure?.upstreamStatus).toBe(upstreamStatus);
      expect(result.error).toContain(words);
    }
  });

  it("isn't mistaken about the run's model by what comes of a request for a title", async () => {
    for (const aside of [{}, { failure: { status: 404, retryable: false, message: "no such model" } }]) {
      const gateway = new FakeGateway();
      const script: Script = async function* () {
        await gateway.call({ failure });
        await gateway.call({ ...aside, model: "m-mini" });
        yield { type: "message", text: "hm" };
        throw new ModelFailed("Something went wrong.", { upstreamStatus: 500 });
      };
      const { result } = await (await world(0, { gateway, script })).run({});
      expect(result.failure).toEqual({ code: "model_failed", retryable: true, upstreamStatus: 429 });
    }
  });

  it("tells the provider's figures in place of the agent's, with what only the agent tells", async () => {
    const gateway = new FakeGateway();
    const script: Script = async function* () {
      await gateway.call({ usage: { input: 100, cached: 40, output: 7 } });
      yield { type: "message", text: "hi" };
      yield { type: "usage", input: 1, output: 2, cost: 0.5 };
      yield done;
    };
    const told = await (await world(0, { gateway, script })).run({});
    const usage = { input: 100, cached: 40, output: 7, total: 107, cost: 0.5 };
    expect(told.result.usage).toEqual(usage);
    expect(eventsOf(told, "usage")).toEqual([{ type: "usage", ...usage }]);
  });

  it("carries nothing for an agent between two runs", async () => {
    const { run, gateway } = await world(1);
    await run({ sessionId: "s" });
    expect(await gateway.call()).toMatchObject({ allowed: false, status: 403 });
  });
});
