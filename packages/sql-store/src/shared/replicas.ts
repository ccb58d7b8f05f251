import type {
  ArrivedAnswer,
  Expiry,
  InteractionQuery,
  Renewal,
  ReplicaKeys,
  StoredInteraction,
  StoredRun,
} from "@ambit/durable/store";
import { Columns, type Database, type Essential, type Row } from "../database.js";
import {
  all,
  asInteger,
  asText,
  before,
  clock,
  equal,
  list,
  locking,
  type Sql,
  sql,
  statement,
} from "../query.js";
import { interactionOf, runOf, wholeRun } from "../rows.js";
import { countAnswer, countExpiry } from "../sizes.js";
import { addDelivery } from "./deliveries.js";
import { lives } from "./sessions.js";

/** Replicas and their leases; questions. */
export class ReplicaRows {
  constructor(readonly database: Database) {}

  async join(
    replica: string,
    address: string,
    leaseMs: number,
    { newest, readable, mayLoseContent }: ReplicaKeys,
  ): Promise<"joined" | "other_replica" | "other_content"> {
    const now = clock(this.database);
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
    const results = await this.database.run(
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
  }

  async renew(replica: string, address: string, leaseMs: number): Promise<Renewal> {
    const [, runs = [], answers = []] = await this.database.run(
      [
        statement(
          sql`INSERT INTO ambit_replicas (id, address, expires_at)
          VALUES (${replica}, ${address}, ${clock(this.database)} + ${asInteger(leaseMs)})
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
  }

  async drain(replica: string): Promise<void> {
    const one = sql`UPDATE ambit_replicas SET draining = 1 WHERE id = ${replica}`;
    await this.database.run([statement(one)], "end");
  }

  async supersede(prefix: string, replica: string): Promise<void> {
    const others = sql`DELETE FROM ambit_replicas
      WHERE SUBSTR(id, 1, CAST(${prefix.length} AS INTEGER)) = ${prefix} AND id <> ${replica} AND draining = 0`;
    await this.database.run([statement(others)], "end");
  }

  async leave(replica: string): Promise<void> {
    await this.database.run(
      [
        statement(sql`DELETE FROM ambit_replicas WHERE id = ${replica}`),
        // A session that another replica may take over is kept.
        statement(sql`DELETE FROM ambit_sessions WHERE replica = ${replica} AND handover IS NULL`),
      ],
      "end",
    );
  }

  async abandoned(): Promise<readonly StoredRun[]> {
    const rows = await this.#rows(
      sql`SELECT ${wholeRun} WHERE state = 'running' AND NOT ${lives(this.database, "ambit_runs")} LIMIT 1000`,
    );
    return rows.map(runOf);
  }

  async takeOver(id: string, fence: number, replica: string): Promise<number | undefined> {
    const [row] = await this.#rows(
      sql`UPDATE ambit_runs SET replica = ${replica}, fence = fence + 1
        WHERE id = ${id} AND fence = ${fence} AND state = 'running' AND NOT ${lives(this.database, "ambit_runs")}
        RETURNING fence`,
      "end",
    );
    return row === undefined ? undefined : new Columns(row).number("fence");
  }

  async interactions(query: InteractionQuery): Promise<readonly StoredInteraction[]> {
    const { id, project, state, runId, session, after, limit, maxCharacters, maxAgeMs, without = [] } = query;
    const wanted = [
      ...equal({ id, project, state, run_id: runId, session }),
      ...(query.holds === true
        ? [sql`(state = 'open' OR (state IN ('answered', 'used') AND answer IS NOT NULL))`]
        : []),
      ...(maxAgeMs === undefined
        ? []
        : [sql`created_at >= ${clock(this.database)} - ${asInteger(maxAgeMs)}`]),
      ...before("ambit_interactions", after, project),
    ];
    const order = sql`ORDER BY created_at DESC, id DESC`;
    const payload = without.includes("payload") ? sql`'' AS payload` : sql`payload`;
    const answer = without.includes("answer") ? sql`NULL AS answer` : sql`answer`;
    const page = sql`WHERE ${all(wanted)} ${order} LIMIT ${limit}`;
    const rows = await this.#rows(
      sql`SELECT id, run_id, project, session, kind, state, created_at, answered_at, answerer, ${payload}, ${answer}
        FROM ambit_interactions ${maxCharacters === undefined ? page : sql`WHERE ${holding(maxCharacters, page, order)} ${order}`}`,
    );
    return rows.map(interactionOf);
  }

  async answer(id: string, answer: string, maxCharacters: number): Promise<StoredInteraction | undefined> {
    const others = sql`SELECT COALESCE(SUM(OCTET_LENGTH(o.answer)), 0) FROM ambit_interactions o
      WHERE o.run_id = ambit_interactions.run_id AND o.state = 'answered'`;
    const hasRoom = sql`(${others}) + ${asInteger(answer.length)} <= ${asInteger(maxCharacters)}`;
    const results = await this.database.run([
      // It may end meanwhile, and is counted then. Until this is committed, no other question of it is answered.
      statement(
        sql`SELECT id FROM ambit_runs WHERE id = (SELECT run_id FROM ambit_interactions WHERE id = ${id})
        ${locking(this.database)}`,
      ),
      // A state within this transaction only: a second answer changes and counts nothing.
      statement(
        sql`UPDATE ambit_interactions SET state = 'answering' WHERE id = ${id} AND state = 'open' AND ${hasRoom}`,
      ),
      ...countAnswer(id, answer.length),
      statement(
        sql`UPDATE ambit_interactions
        SET state = 'answered', answer = ${answer}, answered_at = ${clock(this.database)}
        WHERE id = ${id} AND state = 'answering'`,
      ),
      statement(sql`SELECT * FROM ambit_interactions WHERE id = ${id}`),
    ]);
    const [row] = results.at(-1) ?? [];
    return row === undefined ? undefined : interactionOf(row);
  }

  async nameAnswerer(id: string, answerer: string): Promise<void> {
    await this.#rows(
      sql`UPDATE ambit_interactions
        SET answerer = ${answerer}, answered_at = COALESCE(answered_at, ${clock(this.database)})
        WHERE id = ${id} AND answerer IS NULL`,
    );
  }

  async expiring(maxAgeMs: number, maxCharacters: number): Promise<readonly StoredInteraction[]> {
    const order = sql`ORDER BY created_at, id`;
    const page = sql`WHERE state = 'open' AND created_at < ${clock(this.database)} - ${asInteger(maxAgeMs)}
      AND EXISTS (SELECT 1 FROM ambit_runs r WHERE r.id = run_id AND r.state = 'ended') ${order} LIMIT 100`;
    const rows = await this.#rows(
      sql`SELECT * FROM ambit_interactions WHERE ${holding(maxCharacters, page, order)} ${order}`,
    );
    return rows.map(interactionOf);
  }

  async expire({ id, runId }: StoredInteraction, { text, deliveries = [] }: Expiry): Promise<boolean> {
    const expired = sql`id = ${runId}
      AND EXISTS (SELECT 1 FROM ambit_interactions WHERE id = ${id} AND state = 'expiring')`;
    const [marked] = await this.database.run(
      [
        // A state within this transaction only: the replica that sets it does the rest.
        statement(
          sql`UPDATE ambit_interactions SET state = 'expiring' WHERE id = ${id} AND state = 'open' RETURNING id`,
        ),
        // The first record takes the number that the result had: a reader that has the result gets the second.
        statement(
          sql`UPDATE ambit_runs SET events = events + 2, size = size + ${text.length} WHERE ${expired}`,
        ),
        statement(
          sql`INSERT INTO ambit_chunks (run_id, first_event, last_event, body)
          SELECT id, events - 1, events, ${asText(text)} FROM ambit_runs WHERE ${expired}`,
        ),
        ...deliveries.map((one) => addDelivery(this.database, one, expired)),
        countExpiry(id, text.length),
        statement(
          sql`UPDATE ambit_interactions SET state = 'expired' WHERE id = ${id} AND state = 'expiring'`,
        ),
      ],
      "end",
    );
    return marked?.length === 1;
  }

  async #rows(query: Sql, essential?: Essential): Promise<readonly Row[]> {
    const [rows = []] = await this.database.run([statement(query)], essential);
    return rows;
  }
}

/**
 * The questions of a page whose payloads hold that many characters together: at least the first one. The others' aren't
 * read: neither database reads a text to say how long it is.
 */
function holding(maxCharacters: number, page: Sql, order: Sql): Sql {
  return sql`id IN (SELECT id FROM (
      SELECT id, SUM(bytes) OVER (${order}) - bytes AS before_it FROM (
        SELECT id, created_at, OCTET_LENGTH(payload) AS bytes FROM ambit_interactions ${page}) AS sized
    ) AS measured WHERE before_it < ${asInteger(maxCharacters)})`;
}
