import type { NewRun, ProjectUsage, RunQuota, StoredRun } from "@ambit/durable/store";
import { countStart, dayMs, today } from "../counting.js";
import { Columns, type Database, type Row, statement } from "../database.js";
import { runOf } from "../rows.js";
import { isVisible } from "./append.js";
import { announce, createRun } from "./runs.js";

const minuteMs = 60_000;

/** The usage of projects, over all replicas. */
export class Quotas {
  constructor(readonly database: Database) {}

  async createWithin(run: NewRun, quota: RunQuota): Promise<StoredRun | "over_quota" | undefined> {
    const { project = "" } = run;
    const { now } = this.database;
    const rows = await this.database.run([
      // Locks the project's row: until this is committed, no other replica counts.
      statement(
        `INSERT INTO ambit_usage (project) VALUES ($1)
        ON CONFLICT (project) DO UPDATE SET project = excluded.project`,
        project,
      ),
      createRun(this.database, run, this.#within(quota)),
      countStart(this.database, run.id, run.replica),
      statement(
        `DELETE FROM ambit_starts WHERE project = $1 AND started_at <= ${now} - ${minuteMs}`,
        project,
      ),
      ...announce(run),
      statement(`SELECT * FROM ambit_runs WHERE id = $1 AND ${isVisible}`, run.id),
    ]);
    if (rows[1]?.length === 1) return undefined;
    const row = rows.at(-1)?.[0];
    return row === undefined ? "over_quota" : runOf(row);
  }

  async usage(projects: readonly string[]): Promise<readonly ProjectUsage[]> {
    if (projects.length === 0) return [];
    const { now } = this.database;
    const among = `project IN (${projects.map((_project, index) => `$${index + 1}`).join(", ")})`;
    const select = (text: string) => statement(text, ...projects);
    const [running = [], starts = [], money = [], clock = []] = await this.database.run([
      select(
        `SELECT project, COUNT(*) AS runs FROM ambit_runs WHERE ${among} AND state = 'running' GROUP BY project`,
      ),
      select(
        `SELECT project, COUNT(*) AS runs, MIN(started_at) + ${minuteMs} - ${now} AS left_ms FROM ambit_starts
        WHERE ${among} AND started_at > ${now} - ${minuteMs} GROUP BY project`,
      ),
      select(`SELECT project, usd FROM ambit_usage WHERE ${among} AND day = ${today(now)}`),
      statement(`SELECT ${dayMs} - ${now} % ${dayMs} AS left_ms`),
    ]);
    const of = (rows: readonly Row[]) => new Map(rows.map((row) => [row.project, new Columns(row)]));
    const [runs, begun, spent] = [of(running), of(starts), of(money)];
    const [day] = clock;
    return projects.map((project) => ({
      project,
      running: runs.get(project)?.number("runs") ?? 0,
      begun: begun.get(project)?.number("runs") ?? 0,
      minuteLeftMs: begun.get(project)?.number("left_ms") ?? 0,
      usd: spent.get(project)?.number("usd") ?? 0,
      dayLeftMs: day === undefined ? dayMs : new Columns(day).number("left_ms"),
    }));
  }

  #within({ concurrentRuns, runsPerMinute, usdPerDay }: RunQuota): string {
    const { now } = this.database;
    // The project of the run, as `createRun` has it.
    const of = "project = CAST($2 AS TEXT)";
    const conditions = [
      ...(concurrentRuns === undefined
        ? []
        : [`(SELECT COUNT(*) FROM ambit_runs WHERE ${of} AND state = 'running') < ${concurrentRuns}`]),
      ...(runsPerMinute === undefined
        ? []
        : [
            `(SELECT COUNT(*) FROM ambit_starts WHERE ${of} AND started_at > ${now} - ${minuteMs}) < ${runsPerMinute}`,
          ]),
      ...(usdPerDay === undefined
        ? []
        : [`COALESCE((SELECT usd FROM ambit_usage WHERE ${of} AND day = ${today(now)}), 0) < ${usdPerDay}`]),
    ];
    return conditions.length === 0 ? "1 = 1" : conditions.join(" AND ");
  }
}
