import { Readable, type Transform } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { constants, createZstdCompress, createZstdDecompress } from "node:zlib";
import { AtCapacity } from "@ambit/core";
import { FakeExecutor } from "@ambit/fakes/executor";
import { done, says } from "@ambit/fakes/harness";
import { recordingLog } from "@ambit/fakes/log";
import { describe, expect, test } from "vitest";
import { Calls } from "../../src/call/call.js";
import { EventChannel } from "../../src/events/run-events.js";
import { sizeOf } from "../../src/json-values.js";
import { MemoryGuard, usedMemoryMb } from "../../src/lifetime/fair-shares.js";
import { createWorld, eventsOf } from "../fakes/world.js";

const megabyte = "x".repeat(1_048_576);

/** Bytes of the heap that are in use once all garbage is gone. */
function usedAfterCollection(): number {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  collect();
  return process.memoryUsage().heapUsed;
}

/** Settles once the decoder has given so much, and leaves it open. */
function filled(decoder: Transform, encoded: Buffer, mb: number): Promise<void> {
  let length = 0;
  return new Promise((resolve, reject) => {
    decoder.on("error", reject);
    decoder.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length < mb * 1_048_576) return;
      decoder.pause();
      resolve();
    });
    decoder.write(encoded);
  });
}

describe("calls that an agent reports and never ends", () => {
  test("their arguments aren't kept: 1,000 of them with 128 KB each take almost no memory", () => {
    const calls = new Calls({ reportedCalls: 10_000 });
    const before = usedAfterCollection();
    for (let index = 0; index < 1_000; index += 1) {
      const input = { text: `${index}${megabyte.slice(0, 131_072)}` };
      calls.report(`call-${index}`, "write", input);
      // The control: the same call is still known by its arguments.
      if (index % 100 === 0)
        expect(calls.claim(undefined, { name: "write", origin: "agent", input: input }).id).toBe(
          `call-${index}`,
        );
    }
    expect(usedAfterCollection() - before).toBeLessThan(8 * 1_048_576);
    expect(calls.settleAll()).toHaveLength(1_000);
  });

  test("one too many ends the run as a failure of the agent", async () => {
    const world = await createWorld({
      limits: { reportedCalls: 50 },
      script: async function* () {
        for (let index = 0; index < 1_000; index += 1)
          yield { type: "tool_call", id: `c${index}`, name: "write", input: { index } };
        yield done;
      },
    });
    const recorded = await world.run();
    expect(recorded.result.failure?.code).toBe("harness_failed");
    expect(recorded.result.error).toContain("more tool calls without their results than a run may have (50)");
    expect(eventsOf(recorded, "tool_call")).toHaveLength(50);
  });

  test("ids count too, even a few very long ones", () => {
    const calls = new Calls({ reportedCalls: 1_000 });
    const report = () => {
      for (let index = 0; index < 20; index += 1) calls.report(`${index}${"i".repeat(100_000)}`, "w", {});
    };
    expect(report).toThrow("more tool calls");
  });

  test("ended calls free their memory", () => {
    const calls = new Calls({ reportedCalls: 2 });
    for (let index = 0; index < 100; index += 1) {
      calls.report(`c${index}`, "write", { index });
      calls.report(`c${index}`, "write", { index, more: true });
      expect(calls.settle(`c${index}`)?.name).toBe("write");
    }
  });

  test("outcomes of calls are dropped above 4 MB, the oldest first", () => {
    const calls = new Calls({ reportedCalls: 100 });
    for (let index = 0; index < 20; index += 1) {
      calls.report(`c${index}`, "write", { index });
      const { id } = calls.claim(`c${index}`, { name: "write", origin: "agent", input: { index } });
      calls.step(id, { step: "execute" });
      calls.step(id, { step: "finish", outcome: { output: megabyte, isError: false } });
    }
    expect(calls.settle("c0")?.state.name).toBe("pending");
    expect(calls.settle("c19")?.state).toMatchObject({
      name: "finished",
      outcome: { output: megabyte },
    });
  });
});

describe("output of an agent", () => {
  test("with a nesting that would overflow the stack ends its run as a failure of the agent", async () => {
    const input: unknown = JSON.parse(`${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`);
    const world = await createWorld({
      script: async function* () {
        yield { type: "tool_call", id: "c", name: "write", input };
        yield done;
      },
    });
    const { result } = await world.run();
    expect(result).toMatchObject({ ok: false, failure: { code: "harness_failed" } });
    expect(result.error).toContain("too many levels of lists and objects");
  });

  test("in endless texts is bounded", async () => {
    const world = await createWorld({
      script: async function* () {
        for (let index = 0; index < 10_000; index += 1) yield { type: "message_start", id: `m${index}` };
        yield done;
      },
    });
    const { result } = await world.run();
    expect(result.failure?.code).toBe("harness_failed");
  });

  test("is also limited by size while there is no reader", async () => {
    const channel = new EventChannel<string>(1_000);
    expect(channel.push("a", 600)).toBeUndefined();
    const full = channel.push("b", 600);
    expect(full).toBeInstanceOf(Promise);
    channel.take();
    await full;
    expect(channel.size).toBe(0);
    // The control: small ones aren't held back.
    expect(channel.push("c", 1)).toBeUndefined();
  });
});

describe("calls beyond their number", () => {
  const customTools = [{ name: "send", permission: "allow", callRef: "ref" }];

  test("wait for a slot, 8 of a run at once, and too many are rejected", async () => {
    let running = 0;
    let max = 0;
    const execute = async () => {
      running += 1;
      max = Math.max(max, running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running -= 1;
      return { status: "completed", output: "done" } as const;
    };
    const executor = new FakeExecutor({ execute });
    const world = await createWorld({
      limits: { openCalls: 20 },
      executors: [executor],
      script: async function* ({ tools }) {
        const outcomes = await Promise.all(
          Array.from({ length: 30 }, (_, index) => tools().call("send", { index })),
        );
        yield { type: "message", text: outcomes.map(({ output }) => output).join("\n") };
        yield done;
      },
    });
    const recorded = await world.run({ customTools });
    const text = eventsOf(recorded, "message")[0]?.text ?? "";
    expect(max).toBe(8);
    expect(executor.calls).toHaveLength(20);
    expect(text.split("\n").filter((line) => line.includes("too many calls are open at once"))).toHaveLength(
      10,
    );
  });

  test("a single call of another run doesn't wait for a run with many", async () => {
    const order: string[] = [];
    const execute = async () => {
      await new Promise((resolve) => setTimeout(resolve, 10));
      return { status: "completed", output: "done" } as const;
    };
    const executor = new FakeExecutor({ execute });
    const world = await createWorld({
      executors: [executor],
      limits: { calls: 2, callsPerRun: 2 },
      script: async function* ({ tools, prompt }) {
        const text = JSON.stringify(prompt);
        const count = text.includes("greedy") ? 40 : 1;
        await Promise.all(Array.from({ length: count }, () => tools().call("send", {})));
        order.push(count === 1 ? "modest" : "greedy");
        yield done;
      },
    });
    const asks = (content: string) => ({ customTools, messages: [{ role: "user", content }] });
    const greedy = world.run(asks("greedy"));
    await expect.poll(() => executor.calls.length).toBeGreaterThan(1);
    await Promise.all([greedy, world.run(asks("modest"))]);
    expect(order).toEqual(["modest", "greedy"]);
  });
});

describe("the memory of all runs", () => {
  function holder(held: number) {
    const reasons: AtCapacity[] = [];
    return { held, reasons, cancel: (reason: AtCapacity) => void reasons.push(reason) };
  }

  test("above the limit no run starts; far above it the largest run is ended", () => {
    const runs = [holder(10), holder(500), holder(20)];
    let used = 99;
    const guard = new MemoryGuard(
      100,
      () => runs,
      recordingLog(),
      () => used,
    );
    guard.requireRoom();
    expect(() => guard.requireRoom(2)).toThrow("99 of 100 MiB are in use");
    used = 120;
    expect(() => guard.requireRoom()).toThrow(AtCapacity);
    guard.look();
    expect(runs.every(({ reasons }) => reasons.length === 0)).toBe(true);
    used = 151;
    guard.look();
    expect(runs.map(({ reasons }) => reasons.length)).toEqual([0, 1, 0]);
  });

  test("counts what libraries hold outside V8's heap", async () => {
    const windowMb = 128;
    const zeros = Buffer.alloc(1_048_576);
    const frame = await buffer(
      Readable.from(Array.from({ length: windowMb + 8 }, () => zeros)).pipe(
        createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: 27 } }),
      ),
    );
    const before = usedMemoryMb();
    const decoders = Array.from({ length: 3 }, () => createZstdDecompress());
    await Promise.all(decoders.map((decoder) => filled(decoder, frame, windowMb)));
    // It counts less than three windows: the process's own share is subtracted.
    expect(usedMemoryMb() - before).toBeGreaterThan(windowMb);
    for (const decoder of decoders) decoder.destroy();
  });

  test("a run above it is refused before any work", async () => {
    const world = await createWorld({ limits: { memoryMb: 1 }, script: says("never") });
    await expect(world.run()).rejects.toThrow("MiB are in use): try again later");
    expect(world.sandbox.specs).toEqual([]);
  });

  test("is estimated for values of any depth", () => {
    expect(sizeOf({ a: [megabyte, { b: "c" }] })).toBeGreaterThan(1_048_576);
    expect(sizeOf("abc")).toBeLessThan(100);
    const deep: unknown = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`);
    expect(sizeOf(deep)).toBeGreaterThan(100_000);
  });
});
