import { setTimeout as sleep } from "node:timers/promises";
import type { ObservedRun, RunObservation, RunObserver, TracedCall } from "@ambit/core/plugin";
import { calls, done, says } from "@ambit/fakes/harness";
import { describe, expect, it } from "vitest";
import { createWorld } from "../fakes/world.js";

const tool = { name: "look_up", permission: "allow", callRef: "ref" };
const parent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;

function recorder(observation: Partial<RunObservation> = {}) {
  const seen: string[] = [];
  const runs: ObservedRun[] = [];
  const observer: RunObserver = {
    name: "recorder",
    observe: (run) => {
      runs.push(run);
      return {
        entered: (stage) => void seen.push(stage),
        happened: ({ type }) => void seen.push(type),
        ended: ({ ok }) => void seen.push(ok ? "ok" : "failed"),
        ...observation,
      };
    },
    refused: ({ code, capabilities }) => void seen.push([code, ...capabilities].join(" ")),
  };
  return { seen, runs, observer };
}

describe("an observer of runs", () => {
  it("sees each stage, each event and the result, in order", async () => {
    const { seen, runs, observer } = recorder();
    const world = await createWorld({ script: calls("look_up", {}), observers: [observer] });
    const { result } = await world.run({ customTools: [tool] });
    expect(result.ok).toBe(true);
    expect(runs[0]).toMatchObject({ harness: "scripted", sandbox: "fake", runId: result.runId });
    expect(seen.slice(0, 5)).toEqual(["data", "opening", "filling", "starting", "streaming"]);
    expect(seen).toEqual(expect.arrayContaining(["tool_call", "tool_result"]));
    expect(seen.slice(-3)).toEqual(["closing", "done", "ok"]);
  });

  it("gets the same events as the reader: without the run's credentials", async () => {
    const texts: string[] = [];
    const { observer } = recorder({ happened: (event) => void texts.push(JSON.stringify(event)) });
    const world = await createWorld({ script: says("the key is sk-secret-123"), observers: [observer] });
    const credentials = [{ binding: { kind: "environment", name: "KEY" }, value: "sk-secret-123" }];
    await world.run({ modelConnection: { credentials } });
    expect(texts.join()).toContain("the key is ");
    expect(texts.join()).not.toContain("sk-secret-123");
  });

  it("sets the trace of the result, of `done` and of tool requests; by default the caller's", async () => {
    const traceId = "c".repeat(32);
    const own = (call?: TracedCall) =>
      `00-${traceId}-${(call?.name === "look_up" ? "2" : "1").repeat(16)}-01`;
    const { observer } = recorder({ traceId, traceparent: own });
    const propagated: unknown[] = [];
    for (const observers of [[observer], []]) {
      const world = await createWorld({ script: calls("look_up", {}), observers });
      world.callback.behaviour.execute = async (_call, scope) => {
        propagated.push(scope.traceparent);
        return { status: "completed", output: "" };
      };
      const context = { propagation: { traceparent: parent } };
      const { result, events } = await world.run({ customTools: [tool], context });
      const expected = observers.length > 0 ? traceId : "a".repeat(32);
      expect(result.traceId).toBe(expected);
      expect(events.at(-1)).toMatchObject({ type: "done", traceId: expected });
    }
    expect(propagated).toEqual([own({ id: "call", name: "look_up" }), parent]);
  });

  it("hears of a call that continues under another id, before it hears of that", async () => {
    const heard: string[] = [];
    const { observer } = recorder({
      callRenamed: (from, to) => void heard.push(`renamed ${from} ${to.slice(0, 4)}`),
      happened: (event) => {
        if (event.type === "tool_call" || event.type === "tool_result")
          heard.push(`${event.type} ${event.id?.slice(0, 4)}`);
        // The agent has reported the call, and its report was passed on before the question.
        if (event.type === "message") heard.push(event.text);
      },
    });
    const world = await createWorld({
      script: async function* ({ ask }) {
        yield { type: "tool_call", id: "agents", name: "send", input: { to: "ann" } };
        await sleep(1_200);
        yield { type: "message", text: "now it asks" };
        await ask({ toolCallId: "agents", toolName: "send", input: { to: "ann" } });
        yield done;
      },
      observers: [observer],
    });
    await world.run({ customTools: [{ name: "send", callRef: "ref", permission: "ask" }] });
    expect(heard).toEqual([
      "tool_call agen",
      "now it asks",
      "renamed agents ask_",
      "tool_result agen",
      "tool_call ask_",
    ]);
  });

  it("hears of the boundary's decisions in the stage in which they were made", async () => {
    const { seen, observer } = recorder();
    const world = await createWorld({
      script: async function* () {
        world.sandbox.specs[0]?.onDecision({ target: "evil.example:443", allowed: false, reason: "no" });
        yield done;
      },
      observers: [observer],
    });
    await world.run();
    const at = seen.indexOf("boundary_decision");
    expect(at).toBeGreaterThan(seen.indexOf("streaming"));
    expect(at).toBeLessThan(seen.indexOf("closing"));
  });

  it("gets the run's log, in which each line has the run's ids and its present span", async () => {
    const traceId = "c".repeat(32);
    let stage = "1";
    const { runs, observer } = recorder({
      traceparent: () => `00-${traceId}-${stage.repeat(16)}-01`,
      entered: (name) => {
        if (name === "streaming") stage = "2";
      },
    });
    const world = await createWorld({
      script: async function* () {
        runs[0]?.log.info({ more: 1 }, "in the turn");
        yield done;
      },
      observers: [observer],
    });
    const { result } = await world.run({ sessionId: "s", projectId: "p" });
    runs[0]?.log.warn({}, "after the end");
    const ids = { runId: result.runId, sessionId: "s", projectId: "p", traceId, spanId: "2".repeat(16) };
    expect(world.log.lines).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ message: "in the turn", fields: { ...ids, more: 1 } }),
        expect.objectContaining({ message: "after the end", fields: ids }),
      ]),
    );
  });

  it.for(["observe", "entered", "happened", "ended"] as const)(
    "that throws in %s neither fails the run nor blinds another observer",
    async (method) => {
      const thrower = () => {
        throw new Error("broken observer");
      };
      const broken: RunObserver = {
        name: "broken",
        observe: method === "observe" ? thrower : () => ({ [method]: thrower }),
      };
      const { seen, observer } = recorder();
      const world = await createWorld({ script: says("Hello."), observers: [broken, observer] });
      const { result } = await world.run();
      expect(result).toMatchObject({ ok: true, output: "Hello." });
      expect(seen.at(-1)).toBe("ok");
      const failures = world.log.lines.filter(({ fields }) => fields.observer === "broken");
      expect(failures).toHaveLength(1);
    },
  );

  it("is notified of refused requests, with the missing capabilities", async () => {
    const { seen, observer } = recorder();
    const { runner } = await createWorld({ observers: [observer] });
    const gap = { actor: "fake", capability: "network.deny", reason: "r", fix: "f" } as const;
    runner.refused({ code: "boundary_refused", retryable: false, gaps: [gap, gap] });
    runner.refused({ code: "session_elsewhere", retryable: false });
    expect(seen).toEqual(["boundary_refused network.deny", "session_elsewhere"]);
  });

  it("hears nothing more of an admitted run that can't begin", async () => {
    const { seen, observer } = recorder();
    const world = await createWorld({ observers: [observer] });
    const run = await world.admit({});
    expect(run.announced()).toMatchObject([{ event: { type: "data", name: "run" } }]);
    run.withdraw();
    expect(await run.ended).toMatchObject({ code: "run_cancelled" });
    expect(seen).toEqual(["data"]);
    expect(world.sandbox.opened).toBe(0);
  });
});
