import type { ArrivedAnswer, Store } from "@ambit/durable/store";
import { Columns, type Database } from "./database.js";
import { asInteger, asText, clock, list, rowsOf, sql, statement } from "./query.js";
import { runOf, wholeRun } from "./rows.js";
import { lives } from "./sessions.js";

/** Replicas and their leases. */
export function replicaRows(
  database: Database,
): Pick<Store, "join" | "renew" | "drain" | "supersede" | "leave" | "abandoned" | "takeOver"> {
  return {
    async join(replica, address, leaseMs, { newest, readable, mayLoseContent }) {
      const now = clock(database);
      // A replica of an earlier version says nothing of its keys.
      const others = sql`FROM ambit_replicas WHERE id <> ${replica} AND expires_at > ${now}
        AND newest_key IS NOT NULL
        AND (newest_key NOT IN ${list(readable)} OR readable_keys NOT LIKE ${`%${newest}%`})`;
      const unread = sql`FROM ambit_keys WHERE newest NOT IN ${list(readable)}
        AND (EXISTS (SELECT 1 FROM ambit_runs WHERE state = 'queued')
          OR EXISTS (SELECT 1 FROM ambit_interactions WHERE state = 'answered')
          OR EXISTS (SELECT 1 FROM ambit_deliveries WHERE state = 'pending')
          OR EXISTS (SELECT 1 FROM ambit_sessions WHERE handover IS NOT NULL))`;
      const fits = mayLoseContent
        ? sql`NOT EXISTS (SELECT 1 ${others})`
        : sql`NOT EXISTS (SELECT 1 ${others}) AND NOT EXISTS (SELECT 1 ${unread})`;
      const results = await database.run(
        [
          // Locks its row: others that join wait until this is committed.
          statement(
            sql`INSERT INTO ambit_keys (id, newest) VALUES (1, ${newest})
            ON CONFLICT (id) DO UPDATE SET newest = ambit_keys.newest`,
          ),
          statement(sql`SELECT 1 AS found ${others} LIMIT 1`),
          statement(
            sql`INSERT INTO ambit_replicas (id, address, expires_at, newest_key, readable_keys)
            SELECT ${sql.join([replica, address].map(asText))}, ${now} + ${asInteger(leaseMs)},
              ${sql.join([newest, readable.join(" ")].map(asText))}
            WHERE ${fits} ON CONFLICT (id) DO NOTHING RETURNING id`,
          ),
          statement(
            sql`UPDATE ambit_keys SET newest = ${newest}
            WHERE EXISTS (SELECT 1 FROM ambit_replicas WHERE id = ${replica})`,
          ),
        ],
        "end",
      );
      if (results[2]?.length === 1) return "joined";
      return results[1]?.length === 1 ? "other_replica" : "other_content";
    },

    async renew(replica, address, leaseMs) {
      const [, runs = [], answers = []] = await database.run(
        [
          statement(
            sql`INSERT INTO ambit_replicas (id, address, expires_at)
            VALUES (${replica}, ${address}, ${clock(database)} + ${asInteger(leaseMs)})
            ON CONFLICT (id) DO UPDATE SET address = excluded.address, expires_at = excluded.expires_at`,
            "renew",
          ),
          statement(
            sql`SELECT id, fence, cancel_requested FROM ambit_runs WHERE replica = ${replica} AND state = 'running'`,
            "held runs",
          ),
          statement(
            sql`SELECT i.id, i.run_id, i.answer FROM ambit_interactions i JOIN ambit_runs r ON r.id = i.run_id
            WHERE r.replica = ${replica} AND r.state = 'running' AND i.state = 'answered'`,
            "arrived answers",
          ),
        ],
        "end",
      );
      return {
        runs: runs.map((row) => {
          const columns = new Columns(row);
          const cancelRequested = columns.number("cancel_requested") !== 0;
          return { id: columns.text("id"), fence: columns.number("fence"), cancelRequested };
        }),
        answers: answers.map((row): ArrivedAnswer => {
          const columns = new Columns(row);
          return {
            interactionId: columns.text("id"),
            runId: columns.text("run_id"),
            answer: columns.text("answer"),
          };
        }),
      };
    },

    async drain(replica) {
      const query = sql`UPDATE ambit_replicas SET draining = 1 WHERE id = ${replica}`;
      await database.run([statement(query)], "end");
    },

    async supersede(prefix, replica) {
      const others = sql`DELETE FROM ambit_replicas
        WHERE SUBSTR(id, 1, CAST(${prefix.length} AS INTEGER)) = ${prefix} AND id <> ${replica} AND draining = 0`;
      await database.run([statement(others)], "end");
    },

    async leave(replica) {
      await database.run(
        [
          statement(sql`DELETE FROM ambit_replicas WHERE id = ${replica}`),
          // A session that another replica may take over is kept.
          statement(sql`DELETE FROM ambit_sessions WHERE replica = ${replica} AND handover IS NULL`),
        ],
        "end",
      );
    },

    async abandoned() {
      const rows = await rowsOf(
        database,
        sql`SELECT ${wholeRun} WHERE state = 'running' AND NOT ${lives(database, "ambit_runs")} LIMIT 1000`,
      );
      return rows.map(runOf);
    },

    async takeOver(id, fence, replica) {
      const [row] = await rowsOf(
        database,
        sql`UPDATE ambit_runs SET replica = ${replica}, fence = fence + 1
          WHERE id = ${id} AND fence = ${fence} AND state = 'running' AND NOT ${lives(database, "ambit_runs")}
          RETURNING fence`,
        "end",
      );
      return row === undefined ? undefined : new Columns(row).number("fence");
    },
  };
}
