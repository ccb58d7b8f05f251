import type { NewRun, QueueLimits, StoredRun } from "@ambit/durable/store";
import { lockUsage } from "../counting.js";
import type { Database } from "../database.js";
import { asInteger, asText, constant, type Sql, sql, statement } from "../query.js";
import { runOf } from "../rows.js";
import { isVisible } from "./append.js";
import { announce, createRun } from "./runs.js";

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
      statement(sql`SELECT * FROM ambit_runs WHERE id = ${run.id} AND ${isVisible}`),
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
