import type { StreamRecord } from "@ambit/core/contract";
import { done } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { createWorld } from "../fakes/world.js";

const named = { sessionId: "one" };

/** Says something at once, then much more than a reader's buffers hold once it may, and ends; or never. */
function longTurn() {
  let proceed = () => {};
  const mayProceed = new Promise<void>((resolve) => {
    proceed = resolve;
  });
  const turn = { said: 0, proceed: () => proceed() };
  return {
    turn,
    async *script({ signal }: { readonly signal: AbortSignal }) {
      yield { type: "message" as const, text: "begun" };
      const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      await Promise.race([mayProceed, aborted]);
      if (!signal.aborted) {
        for (; turn.said < 10_000; turn.said += 1) yield { type: "message" as const, text: "x" };
      }
      yield done;
    },
  };
}

async function begun(body: object, limits = {}) {
  const { turn, script } = longTurn();
  const world = await createWorld({ script, limits: { resultCharacters: 1_000, ...limits } });
  const run = await world.admit(body, true);
  const records = run.records();
  let record: StreamRecord | undefined;
  while (record?.kind !== "event" || record.event.type !== "message") {
    const next = await records.next();
    if (next.done === true) throw new Error("the run ended before it said anything");
    record = next.value;
  }
  return { world, run, records, turn };
}

describe("a reader that disconnects", () => {
  test.each([
    ["a session", named],
    ["`onDisconnect`", { onDisconnect: "continue" }],
    ["an explicit null", { ...named, onDisconnect: null }],
  ])("lets a run with %s go on to its end, which nothing slows", async (_what, body) => {
    const { run, records, turn } = await begun(body);
    await records.return();
    turn.proceed();
    expect(await run.ended).toBeUndefined();
    expect(turn.said).toBe(10_000);
  });

  test("keeps the session for the next turn", async () => {
    const { world, run, records, turn } = await begun(named);
    await records.return();
    turn.proceed();
    await run.ended;
    expect((await world.run(named)).result.receipt?.session.history).toBe("warm");
    await world.runner.drain(0);
  });

  test.each([
    ["without a session", {}],
    ["that asks for it", { ...named, onDisconnect: "cancel" }],
    ["with a blank session", { sessionId: " " }],
  ])("cancels a run %s", async (_what, body) => {
    const { run, records, turn } = await begun(body);
    await records.return();
    expect(await run.ended).toMatchObject({ code: "run_cancelled", by: "caller" });
    expect(turn.said).toBe(0);
  });
});

describe("a run that continues without a reader", () => {
  test("can be cancelled by its id; its session is there for the next", async () => {
    const { world, run, records } = await begun(named);
    await records.return();
    world.runner.cancel(run.id);
    expect(await run.ended).toMatchObject({ code: "run_cancelled" });
    expect(await world.runner.endSession("one")).toBe(true);
    expect(world.sandbox.closed).toBe(world.sandbox.opened);
  });

  test("ends with its session", async () => {
    const { world, run, records } = await begun(named);
    await records.return();
    expect(await world.runner.endSession("one")).toBe(true);
    expect(await run.ended).toMatchObject({ code: "run_cancelled" });
  });

  test.each([
    ["runTimeoutMs", { runTimeoutMs: 60 }],
    ["idleMs", { idleMs: 60 }],
  ])("ends by its time limit: %s", async (_name, limits) => {
    const { world, run, records } = await begun(named, limits);
    await records.return();
    expect(await run.ended).toMatchObject({ code: "run_timed_out" });
    // Its files stay for the next run.
    expect(await world.runner.endSession("one")).toBe(true);
    expect(world.sandbox.closed).toBe(world.sandbox.opened);
  });

  test("ends when the runner shuts down", async () => {
    const { world, run, records } = await begun(named);
    await records.return();
    await world.runner.drain(0);
    expect(await run.ended).toMatchObject({ code: "run_cancelled" });
  });
});
