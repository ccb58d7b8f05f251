import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store } from "@ambit/durable/store";
import { sqliteStore } from "@ambit/store-sqlite";
import { expect, it, onTestFinished } from "vitest";

const canary = "canary-of-a-deleted-run-5187";

it.each([
  ["by request", (store: Store) => store.delete("r")],
  ["by age", (store: Store) => store.retain({ maxAgeMs: 1, interactionMs: 1, maxSize: 1_000_000 })],
])("leaves nothing of a run that was deleted %s in its files while they are open", async (_how, remove) => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-deleted-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const backend = sqliteStore({ file: join(folder, "runs.sqlite"), durability: "process" });
  const store = await backend.open({ log });
  onTestFinished(() => store.close());
  const holders = async () => {
    const names = await readdir(folder);
    const contents = await Promise.all(names.map((name) => readFile(join(folder, name), "latin1")));
    return names.filter((_name, index) => contents[index]?.includes(canary));
  };
  await store.create({
    id: "r",
    project: undefined,
    session: undefined,
    state: "running",
    replica: "one",
    digest: "d",
    harness: "demo",
    sandbox: "local",
  });
  await store.append({ runId: "r", fence: 1, first: 1, count: 1, text: `${canary}\n` });
  await store.finish("r", 1, {
    result: JSON.stringify({ canary }),
    outcome: "completed",
    summary: "{}",
    session: undefined,
  });
  expect(await holders()).not.toEqual([]);
  await expect
    .poll(async () => {
      await remove(store);
      return store.get("r");
    })
    .toBeUndefined();
  expect(await holders()).toEqual([]);
});
