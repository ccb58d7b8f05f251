import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm, statfs, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store } from "@ambit/durable/store";
import { sqliteStore } from "@ambit/store-sqlite";
import { expect, it, onTestFinished, type TestContext } from "vitest";
import { Reserve } from "../src/sqlite-file.js";

const log = { debug() {}, info() {}, warn() {}, error() {} };
const end = { result: "{}", outcome: "completed", summary: "{}", session: undefined } as const;
const full = { code: "store_failed", status: 503, message: expect.stringContaining("delete runs") };

async function smallDisk(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-full-"));
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs", folder]);
  onTestFinished(async () => {
    if (status === 0) spawnSync("umount", [folder]);
    await rm(folder, { recursive: true, force: true });
  });
  if (status !== 0) context.skip("host: no file system can be mounted here, so no disk can be filled");
  return folder;
}

async function opened(folder: string): Promise<Store> {
  const backend = sqliteStore({ file: join(folder, "runs.sqlite"), durability: "process" });
  const store = await backend.open({ log });
  onTestFinished(() => store.close());
  return store;
}

const newRun = (id: string) => ({
  id,
  project: undefined,
  session: undefined,
  state: "running" as const,
  replica: "one",
  digest: "d",
  harness: "demo",
  sandbox: "local",
});

const groupOf = (runId: string, first: number, characters: number) => ({
  runId,
  fence: 1,
  first,
  count: 1,
  text: `${"x".repeat(characters)}\n`,
});

it("renews a lease, ends a run and deletes a large one on a full disk, and has room after that", {
  timeout: 60_000,
}, async (context) => {
  const folder = await smallDisk(context);
  const store = await opened(folder);
  for (const id of ["large", "small"]) await store.create(newRun(id));
  for (let first = 1; first <= 20; first += 1) await store.append(groupOf("large", first, 1_000_000));
  await store.finish("large", 1, end);
  const { bavail, bsize } = await statfs(folder);
  await writeFile(join(folder, "filling"), Buffer.alloc(bavail * bsize));
  // The log still has room that earlier writes have taken.
  const fill = async () => {
    for (let first = 1; first <= 100; first += 1) await store.append(groupOf("small", first, 500_000));
  };
  await expect(fill()).rejects.toMatchObject(full);
  await store.renew("one", "http://here", 1_000);
  expect(await store.finish("small", 1, end)).toBe("written");
  expect(await store.delete("large")).toBe(true);
  expect(await store.get("large")).toBeUndefined();
  expect((await store.get("small"))?.state).toBe("ended");
  // A restart finds the disk as it is.
  await store.close();
  const again = await opened(folder);
  await again.renew("two", "http://here", 1_000);
  expect(await again.delete("small")).toBe(true);
  // What was deleted is room again, without anything else being removed.
  await expect
    .poll(() => again.create(newRun("next")).catch(String), { timeout: 20_000, interval: 200 })
    .toBeUndefined();
});

it("refuses what would use the room for deletions, and writes again once there is room", {
  timeout: 60_000,
}, async (context) => {
  const folder = await smallDisk(context);
  const filling = join(folder, "filling");
  const { bavail, bsize } = await statfs(folder);
  await writeFile(filling, Buffer.alloc(bavail * bsize - 4_000_000));
  const store = await opened(folder);
  await store.renew("one", "http://here", 1_000).catch(() => undefined);
  await expect(store.create(newRun("r"))).rejects.toMatchObject(full);
  expect(await store.list({ limit: 10 })).toEqual([]);
  await rm(filling);
  await expect.poll(() => store.create(newRun("r")).catch(String), { timeout: 10_000 }).toBeUndefined();
});

it("finds an exhausted disk by writing to it, and leaves nothing", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-full-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const reserve = new Reserve(join(folder, "runs.sqlite"));
  expect(reserve.isExhausted()).toBe(false);
  await symlink("/dev/full", join(folder, "runs.sqlite-reserve-look"));
  expect(reserve.isExhausted()).toBe(true);
  expect(await readdir(folder)).toEqual([]);
});
