import type { NewRun, ProjectUsage, QueueLimits, RunQuota, StoredRun } from "@ambit/durable/store";
import { countStart, dayMs, lockUsage, today } from "../counting.js";
import { Columns, type Database, type Row } from "../database.js";
import { all, asInteger, asText, clock, constant, list, type Sql, sql, statement } from "../query.js";
import { runOf, wholeRun } from "../rows.js";
import { announce, createRun, isVisible } from "./runs.js";

const minute = constant(60_000);
const day = constant(dayMs);

/** The usage of projects, over all replicas. */
export class Quotas {
  constructor(readonly database: Database) {}

  async createWithin(run: NewRun, quota: RunQuota): Promise<StoredRun | "over_quota" | undefined> {
    const { id, project = "" } = run;
    const rows = await this.database.run([
      // Until this is committed, no other replica counts.
      lockUsage(project),
      statement(createRun(this.database, run, this.#within(run.project, quota))),
      countStart(this.database, id, run.replica),
      statement(
        sql`DELETE FROM ambit_starts WHERE project = ${project} AND started_at <= ${clock(this.database)} - ${minute}`,
      ),
      ...announce(run),
      statement(sql`SELECT ${wholeRun} WHERE id = ${id} AND ${isVisible}`),
    ]);
    if (rows[1]?.length === 1) return undefined;
    const row = rows.at(-1)?.[0];
    return row === undefined ? "over_quota" : runOf(row);
  }

  async usage(projects: readonly string[]): Promise<readonly ProjectUsage[]> {
    if (projects.length === 0) return [];
    const now = clock(this.database);
    const among = sql`project IN ${list(projects)}`;
    const [running = [], starts = [], money = [], time = []] = await this.database.run([
      statement(
        sql`SELECT project, COUNT(*) AS runs FROM ambit_runs WHERE ${among} AND state = 'running' GROUP BY project`,
      ),
      statement(
        sql`SELECT project, COUNT(*) AS runs, MIN(started_at) + ${minute} - ${now} AS left_ms FROM ambit_starts
        WHERE ${among} AND started_at > ${now} - ${minute} GROUP BY project`,
      ),
      statement(sql`SELECT project, usd FROM ambit_usage WHERE ${among} AND day = ${today(now)}`),
      statement(sql`SELECT ${day} - ${now} % ${day} AS left_ms`),
    ]);
    const of = (rows: readonly Row[]) => new Map(rows.map((row) => [row.project, new Columns(row)]));
    const [runs, begun, spent] = [of(running), of(starts), of(money)];
    const [left] = time;
    return projects.map((project) => ({
      project,
      running: runs.get(project)?.number("runs") ?? 0,
      begun: begun.get(project)?.number("runs") ?? 0,
      minuteLeftMs: begun.get(project)?.number("left_ms") ?? 0,
      usd: spent.get(project)?.number("usd") ?? 0,
      dayLeftMs: left === undefined ? dayMs : new Columns(left).number("left_ms"),
    }));
  }

  #within(project: string | undefined, { concurrentRuns, runsPerMinute, usdPerDay }: RunQuota): Sql {
    const now = clock(this.database);
    const of = sql`project = ${asText(project)}`;
    const conditions: Sql[] = [];
    if (concurrentRuns !== undefined)
      conditions.push(
        sql`(SELECT COUNT(*) FROM ambit_runs WHERE ${of} AND state = 'running') < ${constant(concurrentRuns)}`,
      );
    if (runsPerMinute !== undefined)
      conditions.push(
        sql`(SELECT COUNT(*) FROM ambit_starts WHERE ${of} AND started_at > ${now} - ${minute}) < ${constant(runsPerMinute)}`,
      );
    if (usdPerDay !== undefined)
      conditions.push(
        sql`COALESCE((SELECT usd FROM ambit_usage WHERE ${of} AND day = ${today(now)}), 0) < ${constant(usdPerDay)}`,
      );
    return all(conditions);
  }
}

/** No project has this name. */
const everyProject = "";

/** Runs that wait, over all replicas. */
export class Queue {
  constructor(readonly database: Database) {}

  async create(run: NewRun, limits: QueueLimits): Promise<StoredRun | "queue_full" | undefined> {
    const rows = await this.database.run([
      // Until this is committed, no other replica queues. Those that claim don't wait for it.
      lockUsage(everyProject),
      statement(createRun(this.database, run, hasRoom(run, limits))),
      ...announce(run),
      statement(sql`SELECT ${wholeRun} WHERE id = ${run.id} AND ${isVisible}`),
    ]);
    if (rows[1]?.length === 1) return undefined;
    const row = rows.at(-1)?.[0];
    return row === undefined ? "queue_full" : runOf(row);
  }
}

/** Its project's runs count twice: they leave as much free as they take. */
function hasRoom({ project, sealedRequest = "" }: NewRun, { queuedRuns, queuedBytes }: QueueLimits): Sql {
  const isOwn = sql`project = ${asText(project)}`;
  const bytes = sql`OCTET_LENGTH(sealed)`;
  return sql`EXISTS (SELECT 1 FROM (
      SELECT COUNT(*) + COUNT(CASE WHEN ${isOwn} THEN 1 END) AS runs,
        COALESCE(SUM(${bytes} + CASE WHEN ${isOwn} THEN ${bytes} ELSE 0 END), 0) AS bytes
      FROM ambit_runs WHERE state = 'queued') AS waiting
    WHERE runs < ${constant(queuedRuns)} AND bytes + ${asInteger(sealedRequest.length)} <= ${constant(queuedBytes)})`;
}
