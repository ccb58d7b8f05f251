import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type Prepared, WarmPool, type WarmPoolOptions } from "../src/index.js";

class Kept implements Prepared {
  isUsable = true;
  closed = 0;
  constructor(readonly shape: string) {}
  async close() {
    this.closed += 1;
  }
}

function pool(size: number, more: Partial<WarmPoolOptions<string, Kept>> = {}) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const made: Kept[] = [];
  const faults: unknown[] = [];
  const warm = new WarmPool<string, Kept>({
    size,
    idleMs: 60_000,
    delayMs: 10,
    make: async (shape) => {
      const kept = new Kept(shape);
      made.push(kept);
      return kept;
    },
    onFault: (error) => faults.push(error),
    ...more,
  });
  const settle = () => vi.advanceTimersByTimeAsync(20);
  const waiting = () => made.filter(({ closed }) => closed === 0).map(({ shape }) => shape);
  return { warm, made, faults, settle, waiting };
}

describe("a warm pool", () => {
  it("prepares the shapes of the last openings, and hands each item out once", async () => {
    const { warm, made, settle } = pool(2);
    expect(warm.take("a")).toBeUndefined();
    warm.want("a");
    await settle();
    const first = warm.take("a");
    expect(first).toBe(made[0]);
    expect(warm.take("a")).toBeUndefined();
    expect(first?.closed).toBe(0);
  });

  it("separates shapes", async () => {
    const { warm, settle } = pool(2);
    warm.want("a");
    await settle();
    expect(warm.take("b")).toBeUndefined();
    expect(warm.take("a")?.shape).toBe("a");
  });

  it("never exceeds its size, and follows demand", async () => {
    const { warm, settle, waiting } = pool(3);
    for (const shape of ["a", "a", "b"]) warm.want(shape);
    await settle();
    expect(waiting().sort()).toEqual(["a", "a", "b"]);
    for (const shape of ["c", "d", "c"]) warm.want(shape);
    await settle();
    expect(waiting().sort()).toEqual(["c", "c", "d"]);
  });

  it("makes nothing with a size of 0", async () => {
    const { warm, made, settle } = pool(0);
    warm.want("a");
    await settle();
    expect(made).toEqual([]);
  });

  it("closes a lost item, and prepares another", async () => {
    const { warm, made, settle } = pool(1);
    warm.want("a");
    await settle();
    Object.assign(made[0] ?? {}, { isUsable: false });
    expect(warm.take("a")).toBeUndefined();
    expect(made[0]?.closed).toBe(1);
    warm.want("a");
    await settle();
    expect(warm.take("a")).toBe(made[1]);
  });

  it("replaces an unusable item, unless the opening was aborted", async () => {
    const { warm, faults, settle } = pool(1);
    const failing = () => Promise.reject(new Error("no good"));
    for (const signal of [new AbortController().signal, AbortSignal.abort(new Error("given up"))]) {
      warm.want("a");
      await settle();
      const using = warm.using("a", failing, signal);
      if (signal.aborted) await expect(using).rejects.toThrow("given up");
      else await expect(using).resolves.toBeUndefined();
    }
    expect(faults).toEqual([new Error("no good")]);
    expect(await warm.using("a", async () => "used", new AbortController().signal)).toBeUndefined();
  });

  it("closes an unused item, and prepares no other", async () => {
    const { warm, made, waiting, settle } = pool(1, { idleMs: 1_000 });
    warm.want("a");
    await settle();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(waiting()).toEqual([]);
    expect(made).toHaveLength(1);
  });

  it("retries a failed preparation after the next opening", async () => {
    let tries = 0;
    const make = async (shape: string) => {
      tries += 1;
      if (tries === 1) throw new Error("no room");
      return new Kept(shape);
    };
    const { warm, faults, settle } = pool(2, { make });
    warm.want("a");
    await settle();
    expect(tries).toBe(1);
    expect(faults).toEqual([new Error("no room")]);
    warm.want("a");
    await settle();
    expect(warm.take("a")?.shape).toBe("a");
  });

  it("closes everything at its end, including items in preparation", async () => {
    let finish: (kept: Kept) => void = () => undefined;
    const late = new Kept("late");
    const { warm, settle } = pool(1, { make: () => new Promise((resolve) => (finish = resolve)) });
    warm.want("late");
    await settle();
    const closing = warm.close();
    finish(late);
    await closing;
    expect(late.closed).toBe(1);
    warm.want("late");
    await settle();
    expect(warm.take("late")).toBeUndefined();
  });

  it("aborts preparations when it closes, and reports no failure", async () => {
    const make = (_shape: string, signal: AbortSignal) =>
      new Promise<Kept>((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    const { warm, faults, settle } = pool(1, { make });
    warm.want("a");
    await settle();
    await warm.close();
    expect(faults).toEqual([]);
  });
});
