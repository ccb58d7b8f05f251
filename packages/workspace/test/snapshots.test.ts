import { createHash, createSecretKey, randomBytes } from "node:crypto";
import { setImmediate } from "node:timers/promises";

import { expect, test } from "vitest";
import { type Blobs, FileSealing } from "../src/blobs.js";
import { Snapshots } from "../src/index.js";
import { hostSandbox } from "./host-sandbox.js";
import { memoryBlobs } from "./memory-blobs.js";

const owner = '["snapshots","acme"]';

function snapshotsIn(blobs: Blobs, { maxPerProject = 1, maxAgeMs = 1_000 } = {}): Snapshots {
  const sealing = new FileSealing(createSecretKey(randomBytes(32)));
  return new Snapshots({
    kind: "snapshots",
    blobs: async () => blobs,
    sealing: async () => sealing,
    limits: { maxEntries: 1, maxBytes: 1_000 },
    maxPerProject,
    timeoutMs: 1_000,
    folder: "/",
    maxAgeMs,
  });
}

async function* content(text = "x"): AsyncGenerator<Buffer, void, undefined> {
  yield Buffer.from(text);
}

/** What another server exported, or what its header has instead. */
function exported(archive: string, changes: object = {}, changedInfo: object = {}): string {
  const info = {
    id: "0".repeat(32),
    sessionId: "s",
    sandbox: "local",
    createdAt: new Date(0).toISOString(),
    sha256: createHash("sha256").update(archive).digest("hex"),
    bytes: archive.length,
    entries: 1,
    skipped: 0,
    ...changedInfo,
  };
  const header = { format: "ambit-snapshot", version: 1, info, userMessages: [], ...changes };
  return `${JSON.stringify(header)}\n${archive}`;
}

test("old snapshots of every project are deleted, and nothing of runs", async () => {
  const blobs = memoryBlobs();
  const run = "acme/run-1";
  for (const one of [owner, run]) await blobs.put(one, "a", content());
  // They were written in 1970.
  await snapshotsIn(blobs, { maxAgeMs: Date.now() + 1_000_000 }).deleteOld();
  expect(blobs.kept.get(owner)?.size).toBe(1);
  await snapshotsIn(blobs).deleteOld();
  expect(blobs.kept.get(owner)?.size).toBe(0);
  expect(blobs.kept.get(run)?.size).toBe(1);
});

test.each(["..", "A", "a/b", "x".repeat(500), "0".repeat(31), "owner"])(
  "%s is no snapshot, rather than a name that the place for files refuses",
  async (id) => {
    const snapshots = snapshotsIn(memoryBlobs());
    await expect(snapshots.find(id, "acme")).rejects.toMatchObject({ code: "not_found" });
    await expect(snapshots.delete(id, "acme")).rejects.toMatchObject({ code: "not_found" });
    await expect(snapshots.export(id, "acme")).rejects.toMatchObject({ code: "not_found" });
  },
);

test("one that can't be read says so, and can be deleted", async () => {
  const blobs = memoryBlobs();
  const snapshots = snapshotsIn(blobs);
  const { id } = await snapshots.import(content(exported("files")), "acme");
  await blobs.put(owner, `${id}.manifest`, content('{ "version": 2 }'));
  const unreadable = { code: "store_failed", retryable: false, message: expect.stringContaining(id) };
  await expect(snapshots.find(id, "acme")).rejects.toMatchObject(unreadable);
  await expect(snapshots.list("acme")).rejects.toMatchObject(unreadable);
  await snapshots.delete(id, "acme");
  expect(blobs.kept.get(owner)?.size).toBe(0);
  expect(await snapshots.list("acme")).toEqual([]);
});

const digests = Array.from({ length: 1_000 }, () => "0".repeat(64));
const keys = Object.fromEntries(Array.from({ length: 90_000 }, (_, at) => [at.toString(36), 0]));

test.each([
  ["many keys", exported("x", keys), "more than 2,000 values"],
  ["many messages", exported("x", { userMessages: [...digests, ...digests] }), "more than 2,000 values"],
  ["a name as long as it can be", exported("x", {}, { sessionId: "s".repeat(100_000) }), "sessionId"],
])("a header with %s is refused for its size", async (_what, text, reason) => {
  const snapshots = snapshotsIn(memoryBlobs());
  const refused = snapshots.import(content(text), "acme");
  await expect(refused).rejects.toMatchObject({
    code: "snapshot_failed",
    message: expect.stringContaining(reason),
  });
  // The control.
  await snapshots.import(content(exported("x", { userMessages: digests })), "acme");
});

test("a project imports one at a time, and another project meanwhile", async () => {
  const snapshots = snapshotsIn(memoryBlobs());
  const rest = Promise.withResolvers<void>();
  const slow = async function* () {
    const text = exported("files");
    yield Buffer.from(text.slice(0, -2));
    await rest.promise;
    yield Buffer.from(text.slice(-2));
  };
  const first = snapshots.import(slow(), "acme");
  await expect(snapshots.import(content(exported("more")), "acme")).rejects.toMatchObject({
    code: "at_capacity",
  });
  await snapshots.import(content(exported("more")), "other");
  rest.resolve();
  await first;
  await expect(snapshots.import(content(exported("more")), "acme")).rejects.toThrow("maxSnapshotsPerProject");
});

test("several replicas keep no more of a project together, however many snapshots they take at once", async () => {
  const blobs = memoryBlobs();
  const shared: Blobs = {
    ...blobs,
    // A file is listed from when it is written, at its own time.
    files: async function* (of) {
      for await (const { name } of blobs.files(of)) yield { name, at: Date.now() };
    },
    put: async (...args) => {
      await setImmediate();
      await blobs.put(...args);
    },
  };
  const replicas = Array.from({ length: 4 }, () => snapshotsIn(shared, { maxPerProject: 2 }));
  const imported = await Promise.allSettled(
    replicas.map((snapshots) => snapshots.import(content(exported("files")), "acme")),
  );
  const refused = imported.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : []));
  for (const reason of refused) expect(reason).toContain("maxSnapshotsPerProject");
  const [first] = replicas;
  const kept = (await first?.list("acme")) ?? [];
  expect(kept.length).toBeLessThanOrEqual(2);
  expect(kept.length).toBe(imported.length - refused.length);
  // Nothing of those that were refused is left.
  expect(blobs.kept.get(owner)?.size).toBe(3 * kept.length);
});

test("one that a replica began and never ended takes no place for long", async () => {
  // Everything in this place is from 1970.
  const blobs = memoryBlobs();
  await blobs.put(owner, `${"1".repeat(32)}.state`, content());
  const snapshots = snapshotsIn(blobs);
  await snapshots.import(content(exported("files")), "acme");
  expect(await snapshots.list("acme")).toHaveLength(1);
});

test("those that are being written count for the limit of their project", async () => {
  const blobs = memoryBlobs();
  const begun = Promise.withResolvers<void>();
  const rest = Promise.withResolvers<void>();
  const held: Blobs = {
    ...blobs,
    put: async (...args) => {
      begun.resolve();
      await rest.promise;
      await blobs.put(...args);
    },
  };
  const snapshots = snapshotsIn(held);
  const first = snapshots.import(content(exported("files")), "acme");
  await begun.promise;
  const session = { session: "s", project: "acme", backend: "local", sandbox: hostSandbox("/") };
  const state = { conversation: undefined, userMessages: [], secrets: [] };
  const { signal } = new AbortController();
  await expect(snapshots.take(session, state, signal)).rejects.toThrow("maxSnapshotsPerProject");
  rest.resolve();
  await first;
  expect(await snapshots.list("acme")).toHaveLength(1);
});
