import { expect, it } from "vitest";
import { follow } from "../src/log/follow.js";
import { Heads } from "../src/log/heads.js";
import type { Store } from "../src/store/index.js";

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
  const store: Pick<Store, "get" | "read" | "heads"> = { get: down, read: down, heads: down };
  const left = new AbortController();
  // Longer than any test: only the reader's leaving ends the wait.
  const source = {
    store,
    heads: new Heads(store, log),
    log,
    retryTimeoutMs: 3_600_000,
    tail: () => undefined,
  };
  const next = follow(source, "r", 0, left.signal).next();
  await expect.poll(() => reads, { timeout: 20_000 }).toBeGreaterThan(2);
  left.abort();
  await expect(next).rejects.toThrow("The store could not read events");
  expect(warnings).toEqual(["the store could not read events: trying again"]);
});
