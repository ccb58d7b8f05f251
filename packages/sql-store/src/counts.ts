import { type Store, type Tally, type TallyDimension, tallyDays } from "@ambit/durable/store";
import { Columns, type Database, type Row, type Statement } from "./database.js";
import { sizeShards } from "./migrations.js";
import {
  all,
  asInteger,
  asText,
  clock,
  constant,
  equal,
  locking,
  type Sql,
  sql,
  statement,
} from "./query.js";

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

/** The size that is counted for a run without events, since many small runs fill a disk too. */
const rowSize = 1_024;

/** The size of a row of `ambit_runs`. */
export const sizeOfRun = sql`size + ${constant(rowSize)}`;

const anyShard = () => constant(Math.floor(Math.random() * sizeShards.length));

/** Counts a run that is about to end, with a result of so many characters. */
export function countRun(id: string, fence: number, characters: number): Statement {
  const run = sql`FROM ambit_runs WHERE id = ${id} AND fence = ${fence} AND state = 'running'`;
  // A value, not a constant: the statement has one text.
  const shard = Math.floor(Math.random() * sizeShards.length);
  return statement(
    sql`UPDATE ambit_sizes SET size = size + (SELECT ${sizeOfRun} + ${asInteger(characters)} ${run})
    WHERE shard = ${shard} AND EXISTS (SELECT 1 ${run})`,
    "count run",
  );
}

/** Counts characters that an ended run gets, while this question of its expires. */
export function countExpiry(question: string, characters: number): Statement {
  return statement(
    sql`UPDATE ambit_sizes SET size = size + ${asInteger(characters)} WHERE shard = ${anyShard()}
    AND EXISTS (SELECT 1 FROM ambit_interactions WHERE id = ${question} AND state = 'expiring')`,
  );
}

/**
 * Counts an answer that an ended run gets, while its question is being answered, until the run is deleted. That of a running one is
 * used at once.
 */
export function countAnswer(question: string, characters: number): readonly Statement[] {
  const answered = sql`ambit_runs WHERE state = 'ended' AND id =
    (SELECT run_id FROM ambit_interactions WHERE id = ${question} AND state = 'answering')`;
  return countMore(answered, characters);
}

/** Counts the outcome that is kept of an answer, which this run has claimed, until the question's run is deleted. */
export function countOutcome(question: string, run: string, characters: number): readonly Statement[] {
  const asking = sql`ambit_runs WHERE state = 'ended' AND id =
    (SELECT run_id FROM ambit_interactions WHERE id = ${question} AND state = 'claimed'
      AND EXISTS (SELECT 1 FROM ambit_used_answers u WHERE u.id = ${question} AND u.run_id = ${run}))`;
  return countMore(asking, characters);
}

/** @param runs those that get more characters, after `FROM`. */
function countMore(runs: Sql, characters: number): readonly Statement[] {
  return [
    statement(
      sql`UPDATE ambit_sizes SET size = size + ${asInteger(characters)} WHERE shard = ${anyShard()}
      AND EXISTS (SELECT 1 FROM ${runs})`,
    ),
    statement(
      sql`UPDATE ambit_runs SET size = size + ${asInteger(characters)} WHERE id IN (SELECT id FROM ${runs})`,
    ),
  ];
}

/** Takes ended runs out of the count that are about to be deleted. @param chosen a condition over `ambit_runs`. */
export function uncount(chosen: Sql): Statement {
  return statement(
    sql`UPDATE ambit_sizes
    SET size = size - COALESCE((SELECT SUM(${sizeOfRun}) FROM ambit_runs WHERE ${chosen}), 0)
    WHERE shard = ${anyShard()}`,
  );
}

/** Characters of all ended runs. */
export async function keptSize(database: Database): Promise<number> {
  const [[row = {}] = []] = await database.run([
    statement(sql`SELECT CAST(SUM(size) AS BIGINT) AS size FROM ambit_sizes`),
  ]);
  return new Columns(row).number("size");
}

/** Counts all ended runs anew: a replica of an earlier version that shares the database doesn't count. */
export async function recount(database: Database): Promise<void> {
  await database.run([
    // No run ends until all are counted.
    statement(sql`SELECT shard FROM ambit_sizes ORDER BY shard${locking(database)}`),
    statement(sql`UPDATE ambit_sizes SET size = 0 WHERE shard > 0`),
    statement(
      sql`UPDATE ambit_sizes
      SET size = COALESCE((SELECT SUM(${sizeOfRun}) FROM ambit_runs WHERE state = 'ended'), 0) WHERE shard = 0`,
    ),
  ]);
}

/** Rows of a project on one day, beyond which its runs are counted without their models: a caller names these. */
const maxRowsOfDay = 1_000;
/** A writer locks its row until its commit, so there are several to choose from. */
const shards = 4;
/** Groups that one answer has. */
const maxGroups = 1_000;

const outcomes = ["completed", "paused", "cancelled", "failed"] as const;
const counted = [...outcomes, "input", "output", "usd", "sandbox_ms"] as const;

/** What a run adds, which is about to end. */
interface RunUse {
  readonly outcome: (typeof outcomes)[number];
  /** Empty: unknown. */
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
}

/** Counts a run once, before it is marked as ended. */
export function countUse(database: Pick<Database, "now">, id: string, fence: number, use: RunUse): Statement {
  const now = clock(database);
  const day = today(now);
  const ofDay = sql`SELECT COUNT(*) FROM ambit_tallies t WHERE t.project = COALESCE(r.project, '') AND t.day = ${day}`;
  const sums = counted.map((name) => {
    const [column, added] = [sql.ref(name), sql.ref(`excluded.${name}`)];
    return sql`${column} = ${sql.ref(`ambit_tallies.${name}`)} + ${added}`;
  });
  return statement(
    sql`INSERT INTO ambit_tallies (day, project, harness, model, shard, ${sql.join(counted.map((name) => sql.ref(name)))})
    SELECT ${day}, COALESCE(r.project, ''), r.harness,
      CASE WHEN (${ofDay}) < ${constant(maxRowsOfDay)} THEN ${asText(use.model)} ELSE '' END,
      ${asInteger(Math.floor(Math.random() * shards))},
      ${sql.join(outcomes.map((outcome) => asInteger(outcome === use.outcome ? 1 : 0)))},
      ${asInteger(Math.round(use.inputTokens))}, ${asInteger(Math.round(use.outputTokens))},
      CAST(${use.usd} AS DOUBLE PRECISION), ${now} - COALESCE(r.started_at, ${now})
    FROM ambit_runs r WHERE r.id = ${id} AND r.fence = ${fence} AND r.state = 'running'
    ON CONFLICT (project, day, harness, model, shard) DO UPDATE SET ${sql.join(sums)}`,
    "count use",
  );
}

/** Deletes what is older than the days that are kept. */
export function forgetTallies(database: Pick<Database, "now">): Statement {
  return statement(
    sql`DELETE FROM ambit_tallies WHERE day < ${today(clock(database))} - ${constant(tallyDays)}`,
  );
}

/** The use of projects, day by day. It outlives the runs. */
export function tallyRows(database: Database): Pick<Store, "tallies"> {
  return {
    async tallies({ project, from, to, by }) {
      const range = sql`day >= ${asInteger(dayOf(from))} AND day <= ${asInteger(dayOf(to))}`;
      const wanted = all([...equal({ project: project === null ? "" : project }), range]);
      const column = sql.ref(by);
      const runs = sql`SUM(${sql.join(
        outcomes.map((name) => sql.ref(name)),
        sql` + `,
      )})`;
      // The latest days, or the groups with the most runs.
      const order = by === "day" ? sql`day DESC` : sql`${runs} DESC, ${column}`;
      const [groups = [], [total = {}] = []] = await database.run([
        statement(
          sql`SELECT ${column}, ${sums} FROM ambit_tallies WHERE ${wanted}
          GROUP BY ${column} ORDER BY ${order} LIMIT ${constant(maxGroups)}`,
        ),
        statement(sql`SELECT ${sums} FROM ambit_tallies WHERE ${wanted}`),
      ]);
      return {
        groups: groups.map((row) => ({ key: keyOf(row, by), ...tallyOf(row) })),
        total: tallyOf(total),
      };
    },
  };
}

/** A sum of integers has another type in PostgreSQL. */
const sums: Sql = sql.join(
  counted.map((name) => {
    const type = sql.raw(name === "usd" ? "DOUBLE PRECISION" : "BIGINT");
    return sql`CAST(COALESCE(SUM(${sql.ref(name)}), 0) AS ${type}) AS ${sql.ref(name)}`;
  }),
);

/** @param date in ISO 8601, such as `2026-11-29` */
const dayOf = (date: string): number => Date.parse(date) / dayMs;

function keyOf(row: Row, by: TallyDimension): string | undefined {
  const columns = new Columns(row);
  if (by !== "day") return columns.text(by) || undefined;
  return new Date(columns.number("day") * dayMs).toISOString().slice(0, "2026-11-29".length);
}

function tallyOf(row: Row): Tally {
  const columns = new Columns(row);
  return {
    completed: columns.number("completed"),
    paused: columns.number("paused"),
    cancelled: columns.number("cancelled"),
    failed: columns.number("failed"),
    inputTokens: columns.number("input"),
    outputTokens: columns.number("output"),
    usd: columns.number("usd"),
    sandboxMs: columns.number("sandbox_ms"),
  };
}
