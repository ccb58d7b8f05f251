import type { Statement } from "./database.js";

/** Rows that count what is kept: a writer locks its row until its commit, so there are several to choose from. */
export const sizeShards: readonly number[] = Array.from({ length: 16 }, (_, shard) => shard);

const statements = (...texts: readonly string[]): readonly Statement[] => texts.map((text) => ({ text }));

/**
 * The schema's versions, from the first. A released version is never changed: another one follows it. Every table has
 * the project: a caller sees only rows of its own project.
 */
export const migrations: readonly (readonly Statement[])[] = [
  statements(
    `CREATE TABLE ambit_replicas (
      id TEXT PRIMARY KEY, address TEXT NOT NULL, expires_at BIGINT NOT NULL)`,
    `CREATE TABLE ambit_runs (
      id TEXT PRIMARY KEY, project TEXT, session TEXT, state TEXT NOT NULL, replica TEXT NOT NULL,
      fence BIGINT NOT NULL, digest TEXT NOT NULL, harness TEXT NOT NULL, sandbox TEXT NOT NULL, sealed TEXT,
      cancel_requested BIGINT NOT NULL DEFAULT 0, events BIGINT NOT NULL DEFAULT 0, size BIGINT NOT NULL DEFAULT 0,
      result TEXT, created_at BIGINT NOT NULL, started_at BIGINT, ended_at BIGINT)`,
    `CREATE INDEX ambit_runs_created ON ambit_runs (created_at, id)`,
    `CREATE INDEX ambit_runs_state ON ambit_runs (state, created_at)`,
    `CREATE INDEX ambit_runs_session ON ambit_runs (session, created_at)`,
    `CREATE TABLE ambit_chunks (
      run_id TEXT NOT NULL REFERENCES ambit_runs (id) ON DELETE CASCADE, first_event BIGINT NOT NULL,
      last_event BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run_id, first_event))`,
    `CREATE TABLE ambit_interactions (
      id TEXT PRIMARY KEY, run_id TEXT NOT NULL REFERENCES ambit_runs (id) ON DELETE CASCADE, project TEXT,
      session TEXT, kind TEXT NOT NULL, payload TEXT NOT NULL, state TEXT NOT NULL, answer TEXT,
      created_at BIGINT NOT NULL, answered_at BIGINT)`,
    `CREATE INDEX ambit_interactions_state ON ambit_interactions (state, created_at)`,
    `CREATE INDEX ambit_interactions_run ON ambit_interactions (run_id)`,
    `CREATE INDEX ambit_interactions_session ON ambit_interactions (session)`,
    // Separate from the questions, since the record of a used answer must outlive its run.
    `CREATE TABLE ambit_used_answers (id TEXT PRIMARY KEY, used_at BIGINT NOT NULL)`,
    `CREATE TABLE ambit_sessions (
      project TEXT NOT NULL, session TEXT NOT NULL, replica TEXT NOT NULL, sandbox TEXT NOT NULL,
      created_at BIGINT NOT NULL, used_at BIGINT NOT NULL, PRIMARY KEY (project, session))`,
    `CREATE TABLE ambit_deliveries (
      id TEXT PRIMARY KEY, run_id TEXT NOT NULL, project TEXT, url TEXT NOT NULL, event TEXT NOT NULL,
      body TEXT NOT NULL, state TEXT NOT NULL, attempts BIGINT NOT NULL DEFAULT 0, error TEXT,
      due_at BIGINT NOT NULL, created_at BIGINT NOT NULL)`,
    `CREATE INDEX ambit_deliveries_due ON ambit_deliveries (state, due_at)`,
  ),
  // Webhooks: "url" holds the encrypted address.
  statements(
    `ALTER TABLE ambit_runs ADD COLUMN webhook TEXT`,
    `ALTER TABLE ambit_deliveries ADD COLUMN host TEXT NOT NULL DEFAULT ''`,
    `ALTER TABLE ambit_deliveries ADD COLUMN last_status BIGINT`,
    `CREATE INDEX ambit_deliveries_run ON ambit_deliveries (run_id)`,
  ),
  // Sessions that another replica may take over.
  statements(
    `ALTER TABLE ambit_sessions ADD COLUMN fence BIGINT NOT NULL DEFAULT 1`,
    `ALTER TABLE ambit_sessions ADD COLUMN handover TEXT`,
    `ALTER TABLE ambit_replicas ADD COLUMN draining BIGINT NOT NULL DEFAULT 0`,
  ),
  // Quotas of projects. Separate from the runs: a project's usage outlives a run that it deletes.
  statements(
    `CREATE TABLE ambit_usage (
      project TEXT PRIMARY KEY, day BIGINT NOT NULL DEFAULT 0, usd DOUBLE PRECISION NOT NULL DEFAULT 0)`,
    `CREATE TABLE ambit_starts (run_id TEXT PRIMARY KEY, project TEXT NOT NULL, started_at BIGINT NOT NULL)`,
    `CREATE INDEX ambit_starts_project ON ambit_starts (project, started_at)`,
    `CREATE INDEX ambit_runs_project ON ambit_runs (project, state)`,
  ),
  // Messages that are sent again on request, and what sessions have used of their models.
  statements(
    `ALTER TABLE ambit_deliveries ADD COLUMN earlier_attempts BIGINT NOT NULL DEFAULT 0`,
    `CREATE INDEX ambit_deliveries_created ON ambit_deliveries (created_at, id)`,
    `CREATE TABLE ambit_spending (
      project TEXT NOT NULL, session TEXT NOT NULL, requests BIGINT NOT NULL, input BIGINT NOT NULL,
      cached BIGINT NOT NULL, output BIGINT NOT NULL, usd DOUBLE PRECISION NOT NULL, is_priced BIGINT NOT NULL,
      granted BIGINT NOT NULL, used_at BIGINT NOT NULL, PRIMARY KEY (project, session))`,
    `CREATE INDEX ambit_spending_used ON ambit_spending (used_at)`,
  ),
  // What is kept, counted in several rows that writers choose among, and the order in which it is deleted.
  statements(
    `CREATE TABLE ambit_sizes (shard BIGINT PRIMARY KEY, size BIGINT NOT NULL)`,
    ...sizeShards.map((shard) => `INSERT INTO ambit_sizes VALUES (${shard}, 0)`),
    `CREATE INDEX ambit_runs_ended ON ambit_runs (state, ended_at, id)`,
    `CREATE INDEX ambit_used_answers_used ON ambit_used_answers (used_at)`,
    `CREATE INDEX ambit_starts_started ON ambit_starts (started_at)`,
  ),
  // Lists of one project in their order, with and without a state.
  statements(
    `DROP INDEX ambit_runs_project`,
    ...["runs", "interactions", "deliveries"].flatMap((rows) => [
      `CREATE INDEX ambit_${rows}_project ON ambit_${rows} (project, created_at, id)`,
      `CREATE INDEX ambit_${rows}_project_state ON ambit_${rows} (project, state, created_at, id)`,
    ]),
  ),
  // Traces: the run's own span, and what observers need of a run whose replica is lost.
  statements(
    `ALTER TABLE ambit_runs ADD COLUMN trace TEXT`,
    `ALTER TABLE ambit_runs ADD COLUMN sealed_recovery TEXT`,
  ),
  // The key of a message about a run's end, of which there is one; NULL for messages about anything else.
  statements(
    `ALTER TABLE ambit_deliveries ADD COLUMN end_of TEXT`,
    `CREATE UNIQUE INDEX ambit_deliveries_end ON ambit_deliveries (end_of)`,
  ),
  // Fingerprints of keys: of the last one that something was encrypted with, and of those that each replica can read.
  statements(
    `CREATE TABLE ambit_keys (id BIGINT PRIMARY KEY, newest TEXT NOT NULL)`,
    `ALTER TABLE ambit_replicas ADD COLUMN newest_key TEXT`,
    `ALTER TABLE ambit_replicas ADD COLUMN readable_keys TEXT`,
  ),
  // The run that uses an answer, until the outcome is known.
  statements(
    `ALTER TABLE ambit_used_answers ADD COLUMN run_id TEXT`,
    `CREATE INDEX ambit_used_answers_run ON ambit_used_answers (run_id)`,
  ),
  // Sessions that another replica may have only once their owner is lost. Replicas of earlier versions leave them to their owners.
  statements(`ALTER TABLE ambit_sessions ADD COLUMN remains TEXT`),
  // Who answered a question.
  statements(`ALTER TABLE ambit_interactions ADD COLUMN answerer TEXT`),
  // Lists by outcome, agent and sandbox. A result begins with "ok"; in its texts, quotes have a backslash.
  statements(
    `ALTER TABLE ambit_runs ADD COLUMN outcome TEXT`,
    `ALTER TABLE ambit_runs ADD COLUMN summary TEXT`,
    `UPDATE ambit_runs SET outcome = CASE WHEN result LIKE '{"ok":false%' THEN 'failed'
      WHEN result LIKE '%"stopReason":"paused"%' THEN 'paused'
      WHEN result LIKE '%"stopReason":"cancelled"%' THEN 'cancelled' ELSE 'completed' END WHERE state = 'ended'`,
    ...["", "project, "].flatMap((project, ofProject) =>
      ["outcome", "harness", "sandbox"].map(
        (column) =>
          `CREATE INDEX ambit_runs_${ofProject === 0 ? "" : "project_"}${column}
          ON ambit_runs (${project}${column}, created_at, id) ${column === "outcome" ? "WHERE outcome IS NOT NULL" : ""}`,
      ),
    ),
  ),
  // What runs used, by day. Separate from the runs, which it outlives; empty for none, since a key can't be NULL.
  statements(
    `CREATE TABLE ambit_tallies (
      project TEXT NOT NULL, day BIGINT NOT NULL, harness TEXT NOT NULL, model TEXT NOT NULL, shard BIGINT NOT NULL,
      completed BIGINT NOT NULL, paused BIGINT NOT NULL, cancelled BIGINT NOT NULL, failed BIGINT NOT NULL,
      input BIGINT NOT NULL, output BIGINT NOT NULL, usd DOUBLE PRECISION NOT NULL, sandbox_ms BIGINT NOT NULL,
      PRIMARY KEY (project, day, harness, model, shard))`,
    `CREATE INDEX ambit_tallies_day ON ambit_tallies (day)`,
  ),
  // Requests without their secrets, of runs that may be begun again.
  statements(`ALTER TABLE ambit_runs ADD COLUMN sealed_copy TEXT`),
];

/** The schema that this version of Ambit reads and writes. */
export const schemaVersion = migrations.length;

/**
 * The statements that bring a schema up to date.
 * @param found the version in the database; 0 for none.
 * @throws Error for a schema of a newer Ambit, which this one would damage.
 */
export function migrationsFrom(version: number): readonly Statement[] {
  if (version > schemaVersion) {
    throw new Error(
      `the store has schema ${version}, and this version of Ambit supports ${schemaVersion}: install the version that made it, or name another database`,
    );
  }
  return migrations.slice(version).flat();
}
