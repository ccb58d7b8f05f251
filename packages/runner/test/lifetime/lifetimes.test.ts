import { unlessAborted } from "@ambit/core/plugin";
import { forever } from "@ambit/fakes/harness";
import { recordingLog } from "@ambit/fakes/log";
import { describe, expect, test, vi } from "vitest";
import { LinkedAbort, OwnedScope, settledWithin, settlesWithin } from "../../src/lifetime/scope.js";
import { type ItemSource, readBounded } from "../../src/run/agent-turn.js";

const aborts = () => new AbortController();
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("OwnedScope", () => {
  function scopeOf(limitMs = 40) {
    const log = recordingLog();
    return { log, scope: new OwnedScope(log, limitMs) };
  }

  test("closes in reverse, once, whatever throws", async () => {
    const { scope, log } = scopeOf();
    const closed: string[] = [];
    scope.defer(() => void closed.push("first"));
    scope.defer(() => {
      throw new Error("bug");
    });
    scope.defer(async () => {
      await tick();
      closed.push("last");
    });
    await Promise.all([scope.close(), scope.close()]);
    await scope.close();
    expect(closed).toEqual(["last", "first"]);
    expect(scope.unclean).toBe(true);
    expect(log.lines.map(({ message }) => message)).toEqual(["closing failed"]);
  });

  test("a hanging close is logged, and doesn't keep others from closing in time", async () => {
    vi.useFakeTimers();
    try {
      const { scope, log } = scopeOf(1_000);
      const closed: string[] = [];
      for (const name of ["c", "b", "a"]) scope.defer(() => void closed.push(name));
      scope.defer(forever);
      scope.defer(forever);
      const closing = scope.close();
      await vi.advanceTimersByTimeAsync(1_000);
      await closing;
      expect(closed).toEqual(["a", "b", "c"]);
      expect(scope.unclean).toBe(true);
      expect(log.lines).toMatchObject([{ level: "error", fields: { left: 2 } }]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("what is deferred during or after closing is closed at once", async () => {
    const { scope } = scopeOf();
    const closed: string[] = [];
    scope.defer(() => scope.defer(() => void closed.push("while")));
    await scope.close();
    scope.defer(() => void closed.push("after"));
    await scope.close();
    expect(closed).toEqual(["while", "after"]);
    scope.defer(forever);
    await scope.close();
  });

  test("aborts with its parent's reason, until it is detached; the first reason counts", () => {
    const parent = aborts();
    const log = recordingLog();
    const following = new OwnedScope(log, 40, parent.signal);
    const detached = new OwnedScope(log, 40, parent.signal);
    detached.detach();
    const own = new OwnedScope(log, 40, parent.signal);
    own.abort("own");
    parent.abort("parent");
    expect([following, detached, own].map(({ signal }) => signal.reason)).toEqual([
      "parent",
      undefined,
      "own",
    ]);
    expect(new OwnedScope(log, 40, parent.signal).signal.reason).toBe("parent");
  });
});

describe("readBounded", () => {
  async function read(source: AsyncIterable<number>, signal: AbortSignal, graceMs = 30) {
    const items: number[] = [];
    await readBounded(source, signal, graceMs, (item) => void items.push(item));
    return items;
  }

  test("an aborted source that ends by itself is read to its end", async () => {
    const abort = aborts();
    async function* source() {
      yield 1;
      abort.abort("stop");
      await tick();
      yield 2;
    }
    expect(await read(source(), abort.signal)).toEqual([1, 2]);
  });

  test("one that doesn't end is abandoned with the reason, even if it never yielded", async () => {
    for (const first of [true, false]) {
      const abort = aborts();
      async function* source() {
        if (first) yield 1;
        abort.abort("stop");
        await forever();
      }
      await expect(read(source(), abort.signal)).rejects.toBe("stop");
    }
  });

  test("a reader that throws lets the source clean up, but not forever", async () => {
    let cleaned = 0;
    for (const clean of [tick, forever]) {
      async function* source() {
        try {
          yield 1;
          yield 2;
        } finally {
          cleaned += 1;
          await clean();
        }
      }
      const stopping = (item: number) => {
        throw new RangeError(`stopped at ${item}`);
      };
      await expect(readBounded(source(), aborts().signal, 30, stopping)).rejects.toThrow("stopped at 1");
    }
    expect(cleaned).toBe(2);
  });

  test("ready items are taken in order, each after the handler of the previous one", async () => {
    const waiting = [2, 3, 4];
    const order: string[] = [];
    let given = 0;
    const source = {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          given += 1;
          return given === 1 ? { done: false, value: 1 } : { done: true, value: undefined };
        },
        ready: () => waiting.shift(),
      }),
    } satisfies ItemSource<number>;
    await readBounded(source, aborts().signal, 30, (item) => {
      order.push(`begun ${item}`);
      return item === 2
        ? tick().then(() => {
            order.push("ended 2");
          })
        : undefined;
    });
    expect(order).toEqual(["begun 1", "begun 2", "ended 2", "begun 3", "begun 4"]);
  });

  test("an endless source is abandoned too when its time is over", async () => {
    const abort = aborts();
    const source = {
      [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false, value: 1 }), ready: () => 1 }),
    } satisfies ItemSource<number>;
    abort.abort("stop");
    await expect(readBounded(source, abort.signal, 30, tick)).rejects.toBe("stop");
  });

  test("a source's own error is the error", async () => {
    async function* source() {
      yield 1;
      throw new RangeError("own");
    }
    await expect(read(source(), aborts().signal)).rejects.toThrow(RangeError);
  });
});

describe("waiting", () => {
  test("unlessAborted returns the result, or throws the reason at once", async () => {
    const abort = aborts();
    expect(await unlessAborted(abort.signal, async () => 1)).toBe(1);
    const waiting = unlessAborted(abort.signal, forever);
    abort.abort("stop");
    await expect(waiting).rejects.toBe("stop");
    let begun = false;
    const never = unlessAborted(abort.signal, async () => {
      begun = true;
    });
    await expect(never).rejects.toBe("stop");
    expect(begun).toBe(false);
  });

  test("settledWithin continues to wait after the abort, up to a limit", async () => {
    const abort = aborts();
    const polite = settledWithin(abort.signal, 5_000, async () => {
      await new Promise((resolve) => abort.signal.addEventListener("abort", resolve));
      return "told";
    });
    const deaf = settledWithin(abort.signal, 20, forever);
    abort.abort("stop");
    expect(await polite).toBe("told");
    await expect(deaf).rejects.toBe("stop");
  });

  test("settlesWithin", async () => {
    expect(await settlesWithin(Promise.resolve(), 5_000)).toBe(true);
    expect(await settlesWithin(forever(), 10)).toBe(false);
    expect(await settlesWithin(forever(), -1)).toBe(false);
  });

  test("a disposed LinkedAbort follows no signal", () => {
    const source = aborts();
    const linked = new LinkedAbort(source.signal);
    linked[Symbol.dispose]();
    source.abort();
    expect(linked.signal.aborted).toBe(false);
    expect(new LinkedAbort(source.signal).signal.aborted).toBe(true);
  });
});
