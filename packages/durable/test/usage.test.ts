import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Usages } from "../src/memory/usage.js";

function clock(start: number) {
  vi.useFakeTimers({ now: start });
  onTestFinished(() => void vi.useRealTimers());
  const running = { count: 0 };
  return { running, usages: new Usages(() => running.count) };
}

describe("a project's usage in memory", () => {
  it("has room until as many runs are in progress as it may have", () => {
    const { usages, running } = clock(0);
    expect(usages.hasRoom("one", { concurrentRuns: 1 })).toBe(true);
    running.count = 1;
    expect(usages.hasRoom("one", { concurrentRuns: 1 })).toBe(false);
    expect(usages.hasRoom("one", {})).toBe(true);
  });

  it("counts the runs that began within any minute", () => {
    const { usages } = clock(1_000_000);
    const two = { runsPerMinute: 2 };
    for (const afterMs of [0, 20_000]) {
      vi.advanceTimersByTime(afterMs);
      expect(usages.hasRoom("one", two)).toBe(true);
      usages.began("one");
    }
    expect(usages.hasRoom("one", two)).toBe(false);
    expect(usages.of("one")).toMatchObject({ begun: 2, minuteLeftMs: 40_000 });
    vi.advanceTimersByTime(40_000);
    expect(usages.of("one")).toMatchObject({ begun: 1, minuteLeftMs: 20_000 });
    expect(usages.hasRoom("one", two)).toBe(true);
  });

  it("counts the dollars of a day (UTC)", () => {
    const { usages } = clock(Date.UTC(2026, 10, 22, 23));
    const one = { usdPerDay: 1 };
    expect(usages.hasRoom("one", one)).toBe(true);
    for (const usd of [0.6, 0.6]) usages.spent("one", usd);
    expect(usages.hasRoom("one", one)).toBe(false);
    expect(usages.of("one").dayLeftMs).toBe(3_600_000);
    vi.advanceTimersByTime(3_600_000);
    expect(usages.hasRoom("one", one)).toBe(true);
  });

  it("isn't kept of a project without quotas", () => {
    const { usages } = clock(0);
    usages.began("other");
    usages.spent("other", 5);
    usages.spent(undefined, 5);
    expect(usages.of("other")).toMatchObject({ begun: 0, usd: 0 });
  });
});
