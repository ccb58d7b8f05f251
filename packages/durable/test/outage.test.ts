import { expect, it } from "vitest";
import { RemoteProgress, RunLogs, type RunLogsOptions } from "../src/run-log.js";

it("retries nothing for a reader that has left, and logs an outage once for each that waits", async () => {
  const warnings: string[] = [];
  const log = {
    debug() {},
    info() {},
    warn: (_: object, text: string) => void warnings.push(text),
    error() {},
  };
  let reads = 0;
  const down = () => {
    reads += 1;
    return Promise.reject(new Error("the database restarts"));
  };
  const unused = () => Promise.reject(new Error("not called here"));
  const store: RunLogsOptions["store"] = { get: down, read: down, append: unused, finish: unused };
  const left = new AbortController();
  // Longer than any test: only the reader's leaving ends the wait.
  const settings = { retryTimeoutMs: 3_600_000, runMiB: 1 };
  const logs = new RunLogs({ store, settings, log }, new RemoteProgress({ heads: down }, log));
  const next = logs.follow("r", 0, left.signal).next();
  await expect.poll(() => reads, { timeout: 20_000 }).toBeGreaterThan(2);
  left.abort();
  await expect(next).rejects.toThrow("The store could not read events");
  expect(warnings).toEqual(["the store could not read events: trying again"]);
});
