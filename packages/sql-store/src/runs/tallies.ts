import {
  type Tallies,
  type Tally,
  type TallyDimension,
  type TallyQuery,
  tallyDays,
} from "@ambit/durable/store";
import { dayMs, today } from "../counting.js";
import { Columns, type Database, type Row, type Statement } from "../database.js";
import { all, asInteger, asText, clock, constant, equal, type Sql, sql, statement } from "../query.js";

/** Rows of a project on one day, beyond which its runs are counted without their models: a caller names these. */
const maxRowsOfDay = 1_000;
/** A writer locks its row until its commit, so there are several to choose from. */
const shards = 4;
/** Groups that one answer has. */
const maxGroups = 1_000;

const outcomes = ["completed", "paused", "cancelled", "failed"] as const;
const counted = [...outcomes, "input", "output", "usd", "sandbox_ms"] as const;

/** What a run adds, which is about to end. */
export interface RunUse {
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
export class TallyRows {
  constructor(readonly database: Database) {}

  async read({ project, from, to, by }: TallyQuery): Promise<Tallies> {
    const range = sql`day >= ${asInteger(dayOf(from))} AND day <= ${asInteger(dayOf(to))}`;
    const wanted = all([...equal({ project: project === null ? "" : project }), range]);
    const column = sql.ref(by);
    const runs = sql`SUM(${sql.join(
      outcomes.map((name) => sql.ref(name)),
      sql` + `,
    )})`;
    // The latest days, or the groups with the most runs.
    const order = by === "day" ? sql`day DESC` : sql`${runs} DESC, ${column}`;
    const [groups = [], [total = {}] = []] = await this.database.run([
      statement(
        sql`SELECT ${column}, ${sums} FROM ambit_tallies WHERE ${wanted}
        GROUP BY ${column} ORDER BY ${order} LIMIT ${constant(maxGroups)}`,
      ),
      statement(sql`SELECT ${sums} FROM ambit_tallies WHERE ${wanted}`),
    ]);
    return { groups: groups.map((row) => ({ key: keyOf(row, by), ...tallyOf(row) })), total: tallyOf(total) };
  }
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
