import { type Database, type Statement, statement } from "./database.js";

export const dayMs = 86_400_000;

/** The day in UTC, as a number. */
export const today = (now: string) => `(${now} / ${dayMs})`;

/** Records the start of a run, if its project's runs are counted. */
export function countStart({ now }: Pick<Database, "now">, id: string, replica: string): Statement {
  return statement(
    `INSERT INTO ambit_starts (run_id, project, started_at)
    SELECT id, project, ${now} FROM ambit_runs WHERE id = $1 AND replica = $2 AND state = 'running'
    AND project IN (SELECT project FROM ambit_usage) ON CONFLICT (run_id) DO NOTHING`,
    ...[id, replica],
  );
}

/** Records a run's cost once, before it is marked as ended. */
export function countMoney(
  { now }: Pick<Database, "now">,
  id: string,
  fence: number,
  usd: number,
): Statement {
  return statement(
    `INSERT INTO ambit_usage (project, day, usd)
    SELECT project, ${today(now)}, CAST($3 AS DOUBLE PRECISION) FROM ambit_runs
    WHERE id = $1 AND fence = $2 AND state = 'running' AND project IS NOT NULL AND CAST($3 AS DOUBLE PRECISION) > 0
    ON CONFLICT (project) DO UPDATE SET day = excluded.day,
      usd = excluded.usd + CASE WHEN ambit_usage.day = excluded.day THEN ambit_usage.usd ELSE 0 END`,
    ...[id, fence, usd],
  );
}
