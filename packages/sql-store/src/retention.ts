import type { Retention } from "@ambit/durable/store";
import { type Database, statement } from "./database.js";
import { lives } from "./lease.js";
import { forgetUse } from "./session-use.js";

/** Deletes an ended run with its data. False if there is none. */
export async function deleteRun(database: Database, id: string): Promise<boolean> {
  const [, deleted] = await database.run([
    statement(
      `DELETE FROM ambit_deliveries WHERE run_id = $1
      AND EXISTS (SELECT 1 FROM ambit_runs WHERE id = $1 AND state = 'ended')`,
      id,
    ),
    statement("DELETE FROM ambit_runs WHERE id = $1 AND state = 'ended' RETURNING id", id),
  ]);
  return deleted?.length === 1;
}

/** The size that is counted for a run without events, since many small runs fill a disk too. */
const rowSize = 1_024;

/** Deletes what has ended and is too old or too much. @returns how many runs. */
export async function retain(database: Database, { maxAgeMs, maxSize }: Retention): Promise<number> {
  const { now } = database;
  const deleted = await database.run([
    statement(
      `DELETE FROM ambit_runs WHERE state = 'ended' AND ended_at < ${now} - CAST($1 AS BIGINT) RETURNING id`,
      maxAgeMs,
    ),
    statement(
      `DELETE FROM ambit_runs WHERE state = 'ended' AND id IN (
        SELECT id FROM (SELECT id, SUM(size + ${rowSize}) OVER (ORDER BY ended_at DESC, id DESC) AS total
          FROM ambit_runs WHERE state = 'ended') AS kept
        WHERE total > CAST($1 AS BIGINT)) RETURNING id`,
      maxSize,
    ),
    // A pending message outlives its run, so that it is still delivered.
    statement(
      `DELETE FROM ambit_deliveries WHERE state <> 'pending' AND (created_at < ${now} - CAST($1 AS BIGINT)
        OR NOT EXISTS (SELECT 1 FROM ambit_runs WHERE ambit_runs.id = ambit_deliveries.run_id))`,
      maxAgeMs,
    ),
    // Longer than any run that could use an answer again.
    statement(`DELETE FROM ambit_used_answers WHERE used_at < ${now} - 4 * CAST($1 AS BIGINT)`, maxAgeMs),
    statement(
      `DELETE FROM ambit_sessions WHERE used_at < ${now} - CAST($1 AS BIGINT)
      AND NOT ${lives(database, "ambit_sessions")}`,
      maxAgeMs,
    ),
    forgetUse(database),
    statement(`DELETE FROM ambit_starts WHERE started_at < ${now} - CAST($1 AS BIGINT)`, maxAgeMs),
    statement(`DELETE FROM ambit_replicas WHERE expires_at < ${now} - CAST($1 AS BIGINT)`, maxAgeMs),
  ]);
  return (deleted[0]?.length ?? 0) + (deleted[1]?.length ?? 0);
}
