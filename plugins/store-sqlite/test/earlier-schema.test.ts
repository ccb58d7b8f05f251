import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { migrations } from "@ambit/sql-store/schema";
import { sqliteStore } from "@ambit/store-sqlite";
import { expect, it, onTestFinished } from "vitest";

const schemaBeforeOutcomes = 12;

const results = {
  running: undefined,
  completed: '{"ok":true,"output":"\\"stopReason\\":\\"paused\\"","stopReason":"end_turn","events":[]}',
  paused: '{"ok":true,"output":"x","events":[],"stopReason":"paused"}',
  cancelled: '{"ok":true,"events":[],"stopReason":"cancelled"}',
  failed: '{"ok":false,"error":"none","failure":{"code":"run_cancelled","retryable":true}}',
};

it("says what runs of an earlier schema came to", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-earlier-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "runs.sqlite");
  const database = new DatabaseSync(file);
  for (const { text } of migrations.slice(0, schemaBeforeOutcomes).flat()) database.exec(text);
  database.exec(`PRAGMA user_version = ${schemaBeforeOutcomes}`);
  const insert = database.prepare(
    `INSERT INTO ambit_runs (id, state, replica, fence, digest, harness, sandbox, created_at, result)
    VALUES (?, ?, 'one', 1, 'd', 'demo', 'local', 1, ?)`,
  );
  for (const [id, result = null] of Object.entries(results))
    insert.run(id, result === null ? "running" : "ended", result);
  database.close();
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const store = await sqliteStore({ file, durability: "process" }).open({ log });
  onTestFinished(() => store.close());
  const runs = await store.list({ limit: 10 });
  expect(runs.map(({ id, outcome = "running" }) => [id, outcome])).toEqual(
    ["running", "paused", "failed", "completed", "cancelled"].map((id) => [id, id]),
  );
});
