import { AtCapacity, NotFound, RunCancelled } from "@ambit/core";
import { FakeExecutor } from "@ambit/fakes/executor";
import { calls, forever, says, untilAborted } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import type { Run } from "../../src/index.js";
import { createWorld, eventsOf, type Told, type World, type WorldOptions } from "../fakes/world.js";

const customTools = [{ name: "look_up", permission: "allow", callRef: "ref" }];
const byCaller = () => new RunCancelled("The run was cancelled.", "caller");

function signalled() {
  let reach = () => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  /** Says that it was reached, and never comes back. */
  const hang = () => {
    reach();
    return forever();
  };
  return { reach: () => reach(), reached, hang };
}

/** What hangs at each stop of a run. */
const stops: Readonly<Record<string, (hang: () => Promise<never>) => WorldOptions>> = {
  opening: (hang) => ({ script: says("never"), sandbox: { onOpen: hang } }),
  "filling the workspace": (hang) => ({ script: says("never"), sandbox: { onWriteFiles: hang } }),
  publishing: (hang) => ({ script: says("never"), onPublish: hang }),
  starting: (hang) => ({ script: says("never"), harness: { onStart: hang } }),
  "the turn of an agent that ignores it": (hang) => ({
    script: async function* () {
      yield { type: "message", text: "begun" };
      await hang();
    },
  }),
  "a tool call that ignores it": (hang) => ({
    script: calls("look_up"),
    executors: [new FakeExecutor({ execute: hang })],
  }),
};

describe.each(Object.entries(stops))("during %s", (_at, optionsFor) => {
  /** A world whose run hangs there, and the promise that it does. */
  async function hanging() {
    const { reached, hang } = signalled();
    const world = await createWorld({ ...optionsFor(hang), limits: { closeMs: 60 } });
    return {
      world,
      reached,
      run: await world.admit({ customTools, harnessFiles: [{ path: "a", content: "b" }] }),
    };
  }

  test("a cancel by the caller ends with one result, ok and cancelled", async () => {
    const { world, run, reached } = await hanging();
    const { result, records, failure } = await cancelledOnce(reached, world, run);
    expect(records.filter(({ kind }) => kind === "result")).toHaveLength(1);
    expect(result).toMatchObject({ ok: true, stopReason: "cancelled" });
    expect(failure).toMatchObject({ code: "run_cancelled", by: "caller" });
    expect(world.sandbox.closed).toBe(world.sandbox.opened);
    expect(() => world.runner.cancel(run.id)).toThrow(NotFound);
  });

  test("a shutdown ends it with a retryable failure", async () => {
    const { world, run, reached } = await hanging();
    const recorded = world.tell(run);
    await reached;
    await world.runner.drain(0);
    expect((await recorded).result).toMatchObject({
      ok: false,
      failure: { code: "run_cancelled", retryable: true },
    });
    expect(() => world.runner.reserve()).toThrow(AtCapacity);
  });
});

/** Cancels a run once it has got that far. */
async function cancelledOnce(reached: Promise<void>, world: World, run: Run): Promise<Told> {
  const recorded = world.tell(run);
  await reached;
  world.runner.cancel(run.id);
  return recorded;
}

test("a sandbox that opens after the cancel is closed", async () => {
  const opening = signalled();
  const { reach, reached } = signalled();
  const world = await createWorld({
    script: says("never"),
    limits: { closeMs: 40 },
    sandbox: {
      onOpen: async () => {
        reach();
        await opening.reached;
      },
    },
  });
  await cancelledOnce(reached, world, await world.admit({}));
  expect(world.sandbox).toMatchObject({ opened: 0, closed: 0 });
  opening.reach();
  await expect.poll(() => world.sandbox.closed).toBe(1);
});

test("an agent that starts after the cancel is closed", async () => {
  const starting = signalled();
  const { reach, reached } = signalled();
  const world = await createWorld({
    script: says("never"),
    limits: { closeMs: 40 },
    harness: {
      onStart: async () => {
        reach();
        await starting.reached;
      },
    },
  });
  await cancelledOnce(reached, world, await world.admit({}));
  starting.reach();
  await expect.poll(() => world.harness.closed).toBe(1);
});

describe("a run without a reader", () => {
  test("can be cancelled, and its records are its one result", async () => {
    const world = await createWorld({ script: says("never") });
    const run = await world.admit({});
    run.cancel(byCaller());
    expect(await run.ended).toMatchObject({ code: "run_cancelled" });
    const { records, result } = await world.tell(run);
    expect(records.filter(({ kind }) => kind === "result")).toHaveLength(1);
    expect(result.stopReason).toBe("cancelled");
    expect(world.sandbox.specs).toEqual([]);
  });

  test("doesn't delay a shutdown, and frees its slot", async () => {
    await using world = await createWorld({ script: says("never"), limits: { concurrentRuns: 1 } });
    const run = await world.admit({});
    expect(() => world.runner.reserve()).toThrow("Runner at capacity (1 concurrent runs)");
    run.cancel(byCaller());
    await run.ended;
    world.runner.reserve().release();
    await world.admit({});
  });

  test("isn't started after a shutdown has begun", async () => {
    const world = await createWorld({ script: says("never") });
    const slot = world.runner.reserve();
    const draining = world.runner.drain(0);
    await expect(
      slot.admit({ messages: [{ role: "user", content: "x" }] }, { keepsEvents: false }),
    ).rejects.toThrow(AtCapacity);
    await draining;
  });
});

test("calls that a cancel interrupts get results in the events, and the turn ends with done", async () => {
  const { reach, reached } = signalled();
  const world = await createWorld({
    limits: { closeMs: 40 },
    script: async function* () {
      yield { type: "tool_call", id: "bash-1", name: "Bash", input: { command: "sleep 1000" } };
      reach();
      await forever();
    },
  });
  const recorded = await cancelledOnce(reached, world, await world.admit({}));
  expect(eventsOf(recorded, "tool_result")).toEqual([
    {
      type: "tool_result",
      id: "bash-1",
      output: expect.stringMatching(/^INTERRUPTED_BY_USER: /),
      isError: true,
      settled: "interrupted",
    },
  ]);
  expect(recorded.events.at(-1)).toEqual({ type: "done", stopReason: "cancelled" });
});

test("the usage of a cancelled turn is kept if the agent reports it at its end", async () => {
  const { reach, reached } = signalled();
  const usage = { input: 3, cached: 1, output: 4, total: 7 };
  const world = await createWorld({
    script: async function* ({ signal }) {
      yield { type: "message", text: "begun" };
      reach();
      await untilAborted(signal, forever());
      yield { type: "usage", ...usage };
      yield { type: "done", stopReason: "cancelled" };
    },
  });
  const recorded = await cancelledOnce(reached, world, await world.admit({}));
  expect(recorded.result).toMatchObject({ stopReason: "cancelled", usage });
  expect(eventsOf(recorded, "usage")).toHaveLength(1);
});

test("a cancel after the end changes nothing", async () => {
  const world = await createWorld({ script: says("ok") });
  const { run, result } = await world.run();
  run.cancel(byCaller());
  expect(result.stopReason).toBe("end_turn");
  expect(await run.ended).toBeUndefined();
});
