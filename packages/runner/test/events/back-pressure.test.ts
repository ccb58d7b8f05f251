import { forever } from "@ambit/fakes/harness";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { EventChannel } from "../../src/events/run-events.js";
import { createWorld, eventsOf, recordsOf } from "../fakes/world.js";

async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe("a reader that doesn't read", () => {
  test("stops the agent after a bounded number of its million events", async () => {
    let produced = 0;
    const world = await createWorld({
      limits: { closeMs: 40 },
      script: async function* () {
        for (; produced < 1_000_000; produced += 1) yield { type: "message", text: "x" };
      },
    });
    const run = await world.admit({});
    const records = recordsOf(run);
    await records.next();
    await settled();
    const stoppedAt = produced;
    expect(stoppedAt).toBeGreaterThan(100);
    expect(stoppedAt).toBeLessThan(10_000);
    await settled();
    expect(produced).toBe(stoppedAt);
    world.runner.cancel(run.id);
    await run.ended;
    expect(produced).toBeLessThan(10_000);
  });

  test("changes no event's time", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2026-01-01T00:00:00.001Z") });
    onTestFinished(() => void vi.useRealTimers());
    const world = await createWorld({
      script: async function* () {
        yield { type: "message", text: "early" };
        await forever();
      },
    });
    const run = await world.admit({});
    const records = recordsOf(run);
    await records.next();
    await settled();
    vi.setSystemTime("2026-01-01T00:01:00Z");
    const { value } = await records.next();
    expect(value).toMatchObject({ at: "2026-01-01T00:00:00.001Z", event: { text: "early" } });
    await world.runner.drain(0);
  });

  test("doesn't keep a cancelled run from closing", async () => {
    const world = await createWorld({
      limits: { closeMs: 40 },
      script: async function* () {
        for (let index = 0; index < 1_000_000; index += 1) yield { type: "message", text: "x" };
      },
    });
    const run = await world.admit({});
    await recordsOf(run).next();
    await settled();
    world.runner.cancel(run.id);
    expect(await run.ended).toMatchObject({ code: "run_cancelled" });
    expect(world.sandbox.closed).toBe(1);
  });

  test("isn't flooded with connections: they are merged while it is behind, and all are counted", async () => {
    const world = await createWorld({
      limits: { closeMs: 40 },
      script: async function* () {
        for (let index = 0; index < 10_000; index += 1) yield { type: "message", text: "x" };
        await forever();
      },
    });
    const run = await world.admit({});
    const records = recordsOf(run);
    await records.next();
    await settled();
    const onDecision = world.sandbox.specs[0]?.onDecision;
    for (let index = 0; index < 100_000; index += 1) {
      onDecision?.({ target: `host-${index}.example:443`, allowed: false, reason: "not listed" });
    }
    world.runner.cancel(run.id);
    const recorded = await world.tell(run);
    const decisions = eventsOf(recorded, "boundary_decision");
    expect(decisions.length).toBeLessThan(500);
    expect(decisions.reduce((sum, { count }) => sum + count, 0)).toBe(100_000);
    expect(recorded.result.receipt?.decisions).toEqual({ allowed: 0, refused: 100_000 });
  });
});

describe("EventChannel", () => {
  /** Its groups from now on. */
  async function all(channel: EventChannel<number>): Promise<(readonly number[])[]> {
    return await Array.fromAsync(channel.groups());
  }

  test("a push beyond the capacity waits for the reader", async () => {
    const channel = new EventChannel<number>(2);
    expect(channel.push(1, 1)).toBeUndefined();
    expect(channel.push(2, 1)).toBeUndefined();
    let hasRoom = false;
    const room = channel.push(3, 1)?.then(() => {
      hasRoom = true;
    });
    await settled();
    expect(hasRoom).toBe(false);
    expect(channel.take()).toEqual([1, 2, 3]);
    await room;
    expect([hasRoom, channel.size]).toEqual([true, 0]);
    channel.close();
    expect(await all(channel)).toEqual([]);
  });

  test("events after the close are dropped, and writers are released", async () => {
    const channel = new EventChannel<number>(0);
    const room = channel.push(1, 1);
    channel.close();
    await room;
    expect(channel.push(2, 1)).toBeUndefined();
    expect(await all(channel)).toEqual([[1]]);
  });

  test("what comes after its reader has left is dropped, and slows no writer", async () => {
    const channel = new EventChannel<number>(0);
    void channel.push(1, 1);
    for await (const group of channel.groups()) {
      expect(group).toEqual([1]);
      void channel.push(2, 1);
      break;
    }
    expect(channel.push(3, 1)).toBeUndefined();
    expect([channel.size, channel.take()]).toEqual([0, []]);
  });

  test("after a large group, gathers until there is enough, the time is over, or nothing more comes", async () => {
    const channel = new EventChannel<number>(8);
    const push = (...events: number[]) => {
      for (const event of events) void channel.push(event, 1);
    };
    const groups = channel.groups({ events: 2, characters: 2, timeoutMs: 60_000 });
    let taken: readonly number[] | undefined;
    const next = async () => {
      taken = undefined;
      taken = (await groups.next()).value ?? undefined;
    };
    push(1);
    await next();
    expect(taken).toEqual([1]);
    push(2, 3);
    await next();
    expect(taken).toEqual([2, 3]);
    const gathered = next();
    push(4);
    await settled();
    expect(taken).toBeUndefined();
    push(5);
    await gathered;
    expect(taken).toEqual([4, 5]);
    const last = next();
    push(6);
    channel.close();
    await last;
    expect(taken).toEqual([6]);
    const soon = new EventChannel<number>(8);
    for (const event of [1, 2]) void soon.push(event, 1);
    const quick = soon.groups({ events: 2, characters: 2, timeoutMs: 1 });
    await quick.next();
    void soon.push(3, 1);
    expect((await quick.next()).value).toEqual([3]);
  });
});
