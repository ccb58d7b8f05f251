import type { NewDelivery, Store } from "@ambit/durable/store";
import { Columns, type Database, type Statement } from "./database.js";
import {
  all,
  asInteger,
  asText,
  before,
  clock,
  equal,
  list,
  lockSkipping,
  rowsOf,
  type Sql,
  sql,
  statement,
} from "./query.js";
import { deliveryOf } from "./rows.js";

/** All columns but the text of the message: those of a page could fill the memory. */
const listed = sql`id, run_id, project, url, host, event, state, attempts, earlier_attempts, last_status, error,
  due_at, created_at, '' AS body`;

/** Adds a message for a run that meets a condition. */
export function addDelivery(
  database: Pick<Database, "now">,
  message: NewDelivery,
  condition: Sql,
): Statement {
  return insert(database, message, condition, sql`CAST(NULL AS TEXT)`);
}

/**
 * Adds the message about a run's end, unless the run has one. The key has the run's creation: a run that was deleted may be
 * followed by another one with its id.
 */
export function addEndDelivery(
  database: Pick<Database, "now">,
  message: NewDelivery,
  condition: Sql,
): Statement {
  return insert(database, message, condition, sql`id || ' ' || CAST(created_at AS TEXT)`);
}

/** @param endOf unique among all messages, or NULL */
function insert(
  database: Pick<Database, "now">,
  { id, target, host, event, body }: NewDelivery,
  condition: Sql,
  endOf: Sql,
): Statement {
  const now = clock(database);
  return statement(
    sql`INSERT INTO ambit_deliveries
      (id, run_id, project, url, host, event, body, end_of, state, due_at, created_at)
    SELECT ${asText(id)}, id, project, ${asText(target)}, ${asText(host)}, ${asText(event)}, ${asText(body)},
      ${endOf}, 'pending', ${now}, ${now} FROM ambit_runs WHERE ${condition} ON CONFLICT DO NOTHING`,
  );
}

/** Messages to receivers, and their state. */
export function deliveryRows(
  database: Database,
): Pick<Store, "takeDeliveries" | "settleDelivery" | "redeliver" | "deliveries" | "backlog"> {
  return {
    async takeDeliveries(limit, reserveMs, except = { hosts: [], projects: [] }) {
      const now = clock(database);
      const due = all([
        sql`state = 'pending' AND due_at <= ${now}`,
        ...without("host", except.hosts),
        ...without("project", except.projects),
      ]);
      const rows = await rowsOf(
        database,
        sql`UPDATE ambit_deliveries SET due_at = ${now} + ${asInteger(reserveMs)}, attempts = attempts + 1
          WHERE id IN (SELECT id FROM ambit_deliveries WHERE ${due}
            ORDER BY due_at LIMIT ${limit}${lockSkipping(database)}) RETURNING *`,
      );
      return rows.map(deliveryOf);
    },

    async settleDelivery(id, attempt, { state, status, error, retryInMs = 0 }) {
      // A delivered message stays delivered, even if its sender recorded the delivery too late.
      const isLast = state === "delivered" ? sql`attempts >= ${attempt}` : sql`attempts = ${attempt}`;
      await rowsOf(
        database,
        sql`UPDATE ambit_deliveries SET state = ${state}, last_status = ${status}, error = ${error},
          due_at = ${clock(database)} + ${asInteger(retryInMs)}
        WHERE id = ${id} AND state <> 'delivered' AND ${isLast}`,
      );
    },

    async redeliver(id, project) {
      const [row] = await rowsOf(
        database,
        sql`UPDATE ambit_deliveries
        SET state = 'pending', due_at = ${clock(database)}, earlier_attempts = attempts
        WHERE ${all(equal({ id, project }))} RETURNING *`,
      );
      return row === undefined ? undefined : deliveryOf(row);
    },

    async deliveries({ id, project, state, runId, after, limit }) {
      const wanted = [
        ...equal({ id, project, state, run_id: runId }),
        ...before("ambit_deliveries", after, project),
      ];
      const rows = await rowsOf(
        database,
        sql`SELECT ${listed} FROM ambit_deliveries WHERE ${all(wanted)} ORDER BY created_at DESC, id DESC LIMIT ${limit}`,
      );
      return rows.map(deliveryOf);
    },

    async backlog(project) {
      const of = all(equal({ project }));
      const count = (table: string, state: string) =>
        sql`(SELECT COUNT(*) FROM ${sql.table(table)} WHERE state = ${state} AND ${of})`;
      // Neither database reads a text to say how long it is.
      const bytes = sql`(SELECT COALESCE(SUM(OCTET_LENGTH(sealed)), 0) FROM ambit_runs WHERE state = 'queued' AND ${of})`;
      const [row = {}] = await rowsOf(
        database,
        sql`SELECT ${count("ambit_runs", "queued")} AS queued, ${bytes} AS bytes,
          ${count("ambit_deliveries", "pending")} AS pending,
          ${count("ambit_deliveries", "failed")} AS failed`,
      );
      const columns = new Columns(row);
      return {
        queuedRuns: columns.number("queued"),
        queuedBytes: columns.number("bytes"),
        pendingDeliveries: columns.number("pending"),
        failedDeliveries: columns.number("failed"),
      };
    },
  };
}

function without(column: string, names: readonly string[]): readonly Sql[] {
  return names.length === 0 ? [] : [sql`COALESCE(${sql.ref(column)}, '') NOT IN ${list(names)}`];
}
