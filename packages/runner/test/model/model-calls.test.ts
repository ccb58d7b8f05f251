import { ModelFailed } from "@ambit/core";
import { type FakeAnswer, FakeGateway } from "@ambit/fakes/gateway";
import { done, type Script, untilAborted } from "@ambit/fakes/harness";
import { describe, expect, it } from "vitest";
import { eventsOf } from "../fakes/world.js";
import { world } from "./routed-world.js";

describe("the gateway's knowledge of the model", () => {
  const failure = { status: 429, retryable: true, message: "The model answered with 429: slow down" };

  it("an agent that ends its turn normally although its model only failed hasn't succeeded", async () => {
    const { run } = await world(2, { answer: { failure } });
    const { result } = await run({});
    const recorded = { code: "model_failed", retryable: true, upstreamStatus: 429 };
    expect(result).toMatchObject({ ok: false, failure: recorded });
    expect(result.error).toBe("The model answered with 429: slow down.");
  });

  it("has when each request began and how long it took, on the receipt", async () => {
    const { run } = await world(2);
    const { result } = await run({});
    const names = result.receipt?.stages?.map(({ name }) => name);
    expect(names).toEqual(["opening", "filling", "starting", "model", "model", "streaming", "closing"]);
  });

  it("ends the run at the third consecutive failed request, whatever the agent does", async () => {
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

  const partial = {
    retryable: true,
    isPartial: true,
    message: "The model's answer ended before it was finished",
  };

  it("warns of an answer that wasn't finished, which the agent takes for one", async () => {
    const gateway = new FakeGateway();
    const script: Script = async function* () {
      await gateway.call({ failure: partial });
      yield { type: "message", text: "hm" };
      yield done;
    };
    const { result } = await (await world(0, { gateway, script })).run({});
    expect(result).toMatchObject({ ok: true, stopReason: "end_turn" });
    expect(result.warnings).toEqual([
      {
        path: "modelConnection",
        message:
          "1 of 1 answers of the model ended before it was finished: text of the agent may lack its end, or be there twice.",
      },
    ]);
  });

  it("ends an agent that repeats such requests, and one that says nothing of it has failed", async () => {
    const gateway = new FakeGateway();
    let asked = 0;
    const script: Script = async function* ({ signal }) {
      for (; !signal.aborted && asked < 100; asked += 1) await gateway.call({ failure: partial });
      yield done;
    };
    const failure = { code: "model_failed", retryable: true };
    expect((await (await world(0, { gateway, script })).run({})).result).toMatchObject({
      ok: false,
      failure,
    });
    expect(asked).toBe(3);
    const silent: Script = async function* () {
      await gateway.call({ failure: partial });
      yield done;
    };
    const { result } = await (await world(0, { gateway, script: silent })).run({});
    expect(result).toMatchObject({ ok: false, failure, error: `${partial.message}.` });
  });

  it.each(["says nothing of it", "fails"])(
    "says that an answer was too long, where the agent %s",
    async (how) => {
      const gateway = new FakeGateway();
      const script: Script = async function* () {
        await gateway.call({});
        yield { type: "message", text: "hm" };
        await gateway.call({ stopReason: "max_tokens" });
        await gateway.call({ model: "m-mini" });
        if (how === "fails") throw new ModelFailed("stream disconnected", { retryable: true });
        yield done;
      };
      const { result } = await (await world(0, { gateway, script })).run({});
      expect(result).toMatchObject({ ok: true, output: "hm", stopReason: "max_tokens" });
    },
  );

  it("ends an agent whose model only comes to the limit of its answers", async () => {
    const gateway = new FakeGateway();
    let asked = 0;
    const script: Script = async function* ({ signal }) {
      for (; !signal.aborted && asked < 100; asked += 1) await gateway.call({ stopReason: "max_tokens" });
      yield done;
    };
    const { result } = await (await world(0, { gateway, script })).run({});
    expect(result).toMatchObject({ ok: false, failure: { code: "model_failed", retryable: false } });
    expect(result.error).toContain("6 answers of the model in a row ended at the limit of their length");
    expect(asked).toBe(6);
  });

  it("keeps the agent's own reason, and that of a later answer", async () => {
    const ending = async (stopReason: string, answer: FakeAnswer) => {
      const gateway = new FakeGateway();
      const script: Script = async function* () {
        await gateway.call({ stopReason: "max_tokens" });
        await gateway.call(answer);
        yield { type: "message", text: "hm" };
        yield { type: "done", stopReason };
      };
      return (await (await world(0, { gateway, script })).run({})).result.stopReason;
    };
    expect(await ending("end_turn", {})).toBe("end_turn");
    expect(await ending("refusal", { stopReason: "max_tokens" })).toBe("refusal");
  });

  it("adds the true status to an agent's vague failure, and leaves other failures unchanged", async () => {
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

  it("names what it refused because of the boundary, with the fix, as a warning or as the run's failure", async () => {
    const gap = {
      capability: "network.deny",
      reason: "it asked for a search",
      fix: "deny its tool",
    } as const;
    const ending = (then: "goes on" | "fails" | "says nothing") => {
      const gateway = new FakeGateway();
      const script: Script = async function* () {
        gateway.opened.at(-1)?.onDecision({ target: "model.example:443", allowed: false, reason: "no", gap });
        if (then === "goes on") await gateway.call({});
        yield { type: "message", text: "hm" };
        if (then === "fails") throw new ModelFailed("API Error: 403", { upstreamStatus: 403 });
        yield done;
      };
      return world(0, { gateway, script }).then(({ run }) => run({}));
    };
    const message = "fake-route · network.deny: it asked for a search: deny its tool";
    const warnings = [{ path: "sandboxPermission.network", message }];
    expect((await ending("goes on")).result).toMatchObject({ ok: true, warnings });
    const failure = { code: "boundary_refused", retryable: false, gaps: [{ actor: "fake-route", ...gap }] };
    for (const then of ["fails", "says nothing"] as const)
      expect((await ending(then)).result).toMatchObject({ ok: false, failure, warnings });
  });

  it("lists the agent's models if its provider doesn't know the run's", async () => {
    const gateway = new FakeGateway();
    const unknown = { status: 404, retryable: false, message: "The model answered with 404: no such model" };
    const script: Script = async function* () {
      await gateway.call({ failure: unknown });
      yield { type: "message", text: "hm" };
      throw new ModelFailed("API Error: 404");
    };
    const { run } = await world(0, {
      gateway,
      script,
      harness: { models: ["m-1", "p/m-1", "m-2", "p/m-3"] },
    });
    const { result } = await run({});
    expect(result.error).toBe(`${unknown.message}; the agent lists m-2, p/m-3.`);
    expect(result.failure).toEqual({ code: "model_failed", retryable: false, upstreamStatus: 404 });
  });

  it("isn't misled about the run's model by a request for a title", async () => {
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

  it("reports the provider's figures instead of the agent's, with those that only the agent has", async () => {
    const gateway = new FakeGateway();
    const script: Script = async function* () {
      await gateway.call({ usage: { input: 100, cached: 40, output: 7, reasoning: 4 } });
      await gateway.call({ usage: { input: 10, cached: 0, cacheWritten: 9, output: 2, reasoning: 1 } });
      yield { type: "message", text: "hi" };
      yield { type: "usage", input: 1, output: 2, cost: 0.5 };
      yield done;
    };
    const recorded = await (await world(0, { gateway, script })).run({});
    const tokens = { input: 110, cached: 40, cacheWritten: 9, output: 9, reasoning: 5, total: 119 };
    const usage = { ...tokens, cost: 0.5 };
    expect(recorded.result.usage).toEqual(usage);
    expect(eventsOf(recorded, "usage")).toEqual([{ type: "usage", ...usage }]);
  });

  it("carries nothing for an agent between two runs", async () => {
    const { run, gateway } = await world(1);
    await run({ sessionId: "s" });
    expect(await gateway.call()).toMatchObject({ allowed: false, status: 403 });
  });
});
