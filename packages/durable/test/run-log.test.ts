import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { RemoteProgress, RunLogs, type RunLogsOptions } from "../src/run-log.js";

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
