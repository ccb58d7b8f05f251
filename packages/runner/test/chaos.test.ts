import { runResultSchema, streamRecordSchema } from "@ambit/core/contract";
import { HarnessFailed, RunCancelled } from "@ambit/core/plugin";
import { FakeExecutor } from "@ambit/fakes/executor";
import { done, forever, untilAborted } from "@ambit/fakes/harness";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LiveTimers } from "./fakes/live-timers.js";
import { createWorld } from "./fakes/world.js";

/** What can go wrong at a stop. `late` is in time for nothing: it ends after the run has given up. */
const faults = ["none", "own", "foreign", "hang", "late"] as const;
type Fault = (typeof faults)[number];
const stops = ["open", "write", "publish", "start", "turn", "tool", "agentClose", "sandboxClose"] as const;
/** Mostly none: of eight stops that each fail half of the time, the last would hardly be reached. */
const fault = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Fault>("none") },
  { weight: 1, arbitrary: fc.constantFrom<Fault>(...faults) },
);

const situation = fc.record({
  faults: fc.record(
    Object.fromEntries(stops.map((stop) => [stop, fault])) as Record<(typeof stops)[number], typeof fault>,
  ),
  cancel: fc.constantFrom("never", "never", "before", "soon", "drain"),
  permission: fc.constantFrom("allow", "ask", "deny"),
  session: fc.boolean(),
  keepsEvents: fc.boolean(),
});

const unhandled: unknown[] = [];
const note = (reason: unknown) => {
  unhandled.push(reason);
};
beforeAll(() => {
  process.on("unhandledRejection", note);
});
afterAll(() => {
  process.off("unhandledRejection", note);
});

async function strike(fault: Fault): Promise<void> {
  if (fault === "own") throw new HarnessFailed("as it says");
  if (fault === "foreign") throw new TypeError("a bug");
  if (fault === "hang") await forever();
  if (fault === "late") await new Promise((resolve) => setTimeout(resolve, 90));
}

test("whatever fails in any step, a run ends with exactly one valid result and leaves nothing open", async () => {
  using timers = new LiveTimers();
  const ends = new Set<string>();
  await fc.assert(
    fc.asyncProperty(situation, async (one) => {
      const executor = new FakeExecutor({
        execute: async () => {
          await strike(one.faults.tool);
          return { status: "completed", output: "ok" };
        },
      });
      const world = await createWorld({
        limits: { startMs: 40, idleMs: 40, firstResponseMs: 40, toolMs: 40, runTimeoutMs: 200, closeMs: 24 },
        executors: [executor],
        sandbox: {
          onOpen: () => strike(one.faults.open),
          onWriteFiles: () => strike(one.faults.write),
          onClose: () => strike(one.faults.sandboxClose),
        },
        harness: { onStart: () => strike(one.faults.start), onClose: () => strike(one.faults.agentClose) },
        script: async function* ({ tools, signal }) {
          yield { type: "message_start", id: "m" };
          yield { type: "message_delta", id: "m", delta: "begun" };
          yield { type: "tool_call", id: "c", name: "look_up", input: {} };
          const outcome = await untilAborted(signal, tools().call("look_up", {}, { id: "c" }));
          if (outcome !== undefined) yield { type: "tool_result", id: "c", ...outcome };
          await strike(one.faults.turn);
          yield { type: "message_end", id: "m" };
          yield done;
        },
      });
      world.delivery.onPublish = () => strike(one.faults.publish);
      const run = await world.admit(
        {
          customTools: [{ name: "look_up", callRef: "r", permission: one.permission }],
          harnessFiles: [{ path: "a", content: "b" }],
          ...(one.session ? { sessionId: "s" } : {}),
        },
        one.keepsEvents,
      );
      const stop = () => run.cancel(new RunCancelled("stop", "caller"));
      if (one.cancel === "before") stop();
      if (one.cancel === "soon") setImmediate(() => setImmediate(stop));
      if (one.cancel === "drain") void world.runner.drain(5);
      const { records, result, failure } = await world.tell(run);
      for (const record of records) expect(streamRecordSchema.safeParse(record).error).toBeUndefined();
      expect(records.filter(({ kind }) => kind === "result")).toHaveLength(1);
      expect(runResultSchema.safeParse(JSON.parse(JSON.stringify(result))).error).toBeUndefined();
      expect(result.failure?.code).toBe(result.ok ? undefined : failure?.code);
      expect(result.events.length > 0).toBe(one.keepsEvents && records.length > 1);
      ends.add(result.failure?.code ?? result.stopReason ?? "none");
      await run.ended;
      await world.runner.drain(0);
      // What came late is closed late; what hangs in its own close was asked to.
      await expect.poll(() => world.sandbox.opened - world.sandbox.closed, { timeout: 2_000 }).toBe(0);
      expect(() => world.runner.cancel(run.id)).toThrow("There is no run");
    }),
    { numRuns: 300 },
  );
  // The control: all kinds of ends were seen.
  for (const end of [
    "end_turn",
    "paused",
    "cancelled",
    "run_timed_out",
    "plugin_broke_contract",
    "harness_failed",
  ]) {
    expect([...ends]).toContain(end);
  }
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(unhandled).toEqual([]);
  await expect.poll(() => timers.count).toBe(0);
}, 120_000);
