import { expect, test } from "vitest";
import { OutputsRetention } from "../src/index.js";
import { memoryBlobs } from "./memory-blobs.js";

const log = { debug() {}, info() {}, warn() {}, error() {} };

async function* text(content: string) {
  yield Buffer.from(content);
}

async function look(existing: (owners: readonly string[]) => Promise<ReadonlySet<string>>, maxAgeMs = 1) {
  const blobs = memoryBlobs();
  for (let index = 0; index < 250; index += 1) await blobs.put(`run-${index}`, "patch", text("x"));
  await new OutputsRetention({
    blobs: async () => blobs,
    maxAgeMs,
    existing,
    snapshots: [],
    log,
  }).look();
  return [...blobs.kept.keys()];
}

test("files of runs that don't exist are deleted, others stay", async () => {
  const asked: number[] = [];
  const kept = await look(async (owners) => {
    asked.push(owners.length);
    return new Set(owners.filter((owner) => owner.endsWith("7")));
  });
  expect(kept).toHaveLength(25);
  expect(asked).toEqual([100, 100, 50]);
});

test("nothing is deleted while the store doesn't answer, or before a run could have been deleted for its age", async () => {
  expect(await look(() => Promise.reject(new Error("away")))).toHaveLength(250);
  expect(await look(async () => new Set(), Date.now() + 1_000_000)).toHaveLength(250);
});
