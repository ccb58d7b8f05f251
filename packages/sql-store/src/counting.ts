import type { Database, Statement } from "./database.js";
import { clock, constant, type Sql, sql, statement } from "./query.js";

export const dayMs = 86_400_000;

/** The day in UTC, as a number. */
export const today = (now: Sql) => sql`(${now} / ${constant(dayMs)})`;

/** Locks the project's row: until the transaction is committed, no other replica does. */
export function lockUsage(project: string): Statement {
  return statement(
    sql`INSERT INTO ambit_usage (project) VALUES (${project})
    ON CONFLICT (project) DO UPDATE SET project = excluded.project`,
  );
}

/** Records the start of a run, if its project's runs are counted. */
export function countStart(database: Pick<Database, "now">, id: string, replica: string): Statement {
  return statement(
    sql`INSERT INTO ambit_starts (run_id, project, started_at)
    SELECT id, project, ${clock(database)} FROM ambit_runs WHERE id = ${id} AND replica = ${replica} AND state = 'running'
    AND project IN (SELECT project FROM ambit_usage) ON CONFLICT (run_id) DO NOTHING`,
  );
}

/** Records a run's cost once, before it is marked as ended. */
export function addCost(database: Pick<Database, "now">, id: string, fence: number, usd: number): Statement {
  const money = sql`CAST(${usd} AS DOUBLE PRECISION)`;
  return statement(
    sql`INSERT INTO ambit_usage (project, day, usd)
    SELECT project, ${today(clock(database))}, ${money} FROM ambit_runs
    WHERE id = ${id} AND fence = ${fence} AND state = 'running' AND project IS NOT NULL AND ${money} > 0
    ON CONFLICT (project) DO UPDATE SET day = excluded.day,
      usd = excluded.usd + CASE WHEN ambit_usage.day = excluded.day THEN ambit_usage.usd ELSE 0 END`,
  );
}
