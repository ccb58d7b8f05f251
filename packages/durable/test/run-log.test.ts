import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { RemoteProgress, RunLogs, type RunLogsOptions } from "../src/run-log.js";
import type { StoredRun } from "../src/store.js";

const log = { debug() {}, info() {}, warn() {}, error() {} };
const settings = { retryTimeoutMs: 3_600_000, runMiB: 1 };
const store: RunLogsOptions["store"] = {
  get: async () => undefined,
  read: async () => [],
  append: async () => "written",
  finish: async () => "written",
};
const { signal } = new AbortController();

it("gives a reader what is added while it looks for more, at whatever moment", async () => {
  const logs = new RunLogs({ store, settings, log }, new RemoteProgress({ heads: async () => [] }, log));
  const missed: number[] = [];
  // In microtasks, from the beginning of the append to that of the reader.
  for (let distance = 0; distance < 60; distance += 1) {
    const id = `run-${distance}`;
    const runLog = logs.open(id, 1, undefined);
    const appending = runLog.append({ count: 1, text: "{}\n" }, signal);
    for (let step = 0; step < distance; step += 1) await undefined;
    let read: unknown;
    void logs
      .follow(id, 0, signal)
      .next()
      .then(({ value }) => {
        read = value;
      });
    await appending;
    await nextTurn();
    if (read === undefined) missed.push(distance);
    runLog.close();
  }
  expect(missed).toEqual([]);
});

it("gives a reader of a queued run what the run begins with, at whatever moment it begins here", async () => {
  const queued: StoredRun = {
    id: "",
    session: undefined,
    project: undefined,
    state: "queued",
    replica: "one",
    fence: 1,
    digest: "",
    harness: "demo",
    sandbox: "local",
    webhook: undefined,
    trace: undefined,
    sealedRecovery: undefined,
    sealedCopy: undefined,
    events: 0,
    size: 0,
    cancelRequested: false,
    createdAt: 0,
    startedAt: undefined,
    endedAt: undefined,
    openQuestions: 0,
    outcome: undefined,
    summary: undefined,
    result: undefined,
  };
  const withQueued = { ...store, get: async (id: string) => ({ ...queued, id }) };
  /** Runs whose readers wait for other replicas: they look again in time. */
  const elsewhere = new Set<string>();
  const beyond = (id: string, _event: number, left: AbortSignal) => {
    elsewhere.add(id);
    return new Promise<void>((resolve) => left.addEventListener("abort", () => resolve()));
  };
  const logs = new RunLogs({ store: withQueued, settings, log }, { beyond });
  const missed: number[] = [];
  for (let distance = 0; distance < 60; distance += 1) {
    const id = `run-${distance}`;
    let read: unknown;
    const left = new AbortController();
    void logs
      .follow(id, 0, left.signal)
      .next()
      .then(({ value }) => {
        read = value;
      });
    for (let step = 0; step < distance; step += 1) await undefined;
    const runLog = logs.open(id, 1, { count: 1, text: "{}\n" });
    await nextTurn();
    if (read === undefined && !elsewhere.has(id)) missed.push(distance);
    left.abort();
    runLog.close();
  }
  expect(missed).toEqual([]);
  // The later ones began when their reader waited already.
  expect(elsewhere.size).toBeLessThan(60);
});
