import { createSecretKey, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { FileSealing } from "../src/blobs/index.js";
import { Snapshots } from "../src/index.js";
import { memoryBlobs } from "./memory-blobs.js";

test("old snapshots of every project are deleted, and nothing of runs", async () => {
  const blobs = memoryBlobs();
  const content = async function* () {
    yield Buffer.from("x");
  };
  const [own, run] = ['["snapshots","acme"]', "acme/run-1"];
  for (const owner of [own, run]) await blobs.put(owner, "a", content());
  const snapshots = (maxAgeMs: number) =>
    new Snapshots({
      blobs: async () => blobs,
      sealing: async () => new FileSealing(createSecretKey(randomBytes(32))),
      limits: { maxEntries: 1, maxBytes: 1 },
      maxPerProject: 1,
      timeoutMs: 1_000,
      folder: "/",
      maxAgeMs,
    });
  // They were written in 1970.
  await snapshots(Date.now() + 1_000_000).deleteOld();
  expect(blobs.kept.get(own)?.size).toBe(1);
  await snapshots(1_000).deleteOld();
  expect(blobs.kept.get(own)?.size).toBe(0);
  expect(blobs.kept.get(run)?.size).toBe(1);
});
