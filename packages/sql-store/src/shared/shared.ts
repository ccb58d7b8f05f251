import type {
  ArrivedAnswer,
  Expiry,
  InteractionQuery,
  Renewal,
  StoredInteraction,
  StoredRun,
} from "@ambit/durable/store";
import {
  Columns,
  type Database,
  type Essential,
  named,
  type Row,
  type Statement,
  statement,
} from "../database.js";
import { interactionOf, runOf } from "../rows.js";
import { countExpiry } from "../sizes.js";
import { Where } from "../where.js";
import { addDelivery } from "./deliveries.js";
import { lives } from "./lease.js";

/** Replicas and their leases; questions. */
export class Shared {
  constructor(readonly database: Database) {}

  async renew(replica: string, address: string, leaseMs: number): Promise<Renewal> {
    const { now } = this.database;
    const [, runs = [], answers = []] = await this.database.run(
      [
        named(
          "renew",
          statement(
            `INSERT INTO ambit_replicas (id, address, expires_at) VALUES ($1, $2, ${now} + CAST($3 AS BIGINT))
        ON CONFLICT (id) DO UPDATE SET address = excluded.address, expires_at = excluded.expires_at`,
            ...[replica, address, leaseMs],
          ),
        ),
        named(
          "held runs",
          statement(
            "SELECT id, fence, cancel_requested FROM ambit_runs WHERE replica = $1 AND state = 'running'",
            replica,
          ),
        ),
        named(
          "arrived answers",
          statement(
            `SELECT i.id, i.run_id, i.answer FROM ambit_interactions i JOIN ambit_runs r ON r.id = i.run_id
        WHERE r.replica = $1 AND r.state = 'running' AND i.state = 'answered'`,
            replica,
          ),
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
    await this.database.run(
      [statement("UPDATE ambit_replicas SET draining = 1 WHERE id = $1", replica)],
      "end",
    );
  }

  async supersede(prefix: string, replica: string): Promise<void> {
    await this.database.run(
      [
        statement(
          "DELETE FROM ambit_replicas WHERE SUBSTR(id, 1, CAST($2 AS INTEGER)) = $1 AND id <> $3 AND draining = 0",
          ...[prefix, prefix.length, replica],
        ),
      ],
      "end",
    );
  }

  async leave(replica: string): Promise<void> {
    await this.database.run(
      [
        statement("DELETE FROM ambit_replicas WHERE id = $1", replica),
        // A session that another replica may take over is kept.
        statement("DELETE FROM ambit_sessions WHERE replica = $1 AND handover IS NULL", replica),
      ],
      "end",
    );
  }

  async abandoned(): Promise<readonly StoredRun[]> {
    const rows = await this.#rows({
      text: `SELECT * FROM ambit_runs WHERE state = 'running' AND NOT ${lives(this.database, "ambit_runs")} LIMIT 1000`,
    });
    return rows.map(runOf);
  }

  async takeOver(id: string, fence: number, replica: string): Promise<number | undefined> {
    const [row] = await this.#rows(
      statement(
        `UPDATE ambit_runs SET replica = $3, fence = fence + 1
        WHERE id = $1 AND fence = $2 AND state = 'running' AND NOT ${lives(this.database, "ambit_runs")} RETURNING fence`,
        ...[id, fence, replica],
      ),
      "end",
    );
    return row === undefined ? undefined : new Columns(row).number("fence");
  }

  async interactions(query: InteractionQuery): Promise<readonly StoredInteraction[]> {
    const { project, state, runId, session, after, limit, maxCharacters } = query;
    const where = new Where().equals("project", project).equals("state", state);
    where.equals("run_id", runId).equals("session", session).before("ambit_interactions", after);
    const max = where.value(limit);
    const order = "ORDER BY created_at DESC, id DESC";
    const page = `SELECT * FROM ambit_interactions ${where} ${order} LIMIT ${max}`;
    const text =
      maxCharacters === undefined
        ? page
        : `SELECT * FROM (SELECT page.*, SUM(LENGTH(payload)) OVER (${order}) - LENGTH(payload) AS before_it
            FROM (${page}) AS page) AS measured WHERE before_it < ${where.value(maxCharacters)} ${order}`;
    const rows = await this.#rows({ text, values: where.values });
    return rows.map(interactionOf);
  }

  async answer(id: string, answer: string): Promise<StoredInteraction | undefined> {
    const [, rows] = await this.database.run([
      statement(
        `UPDATE ambit_interactions SET state = 'answered', answer = $2, answered_at = ${this.database.now}
        WHERE id = $1 AND state = 'open'`,
        ...[id, answer],
      ),
      statement("SELECT * FROM ambit_interactions WHERE id = $1", id),
    ]);
    const [row] = rows ?? [];
    return row === undefined ? undefined : interactionOf(row);
  }

  async useAnswer(id: string): Promise<boolean> {
    const [used] = await this.database.run([
      statement(
        `INSERT INTO ambit_used_answers (id, used_at) VALUES ($1, ${this.database.now})
        ON CONFLICT (id) DO NOTHING RETURNING id`,
        id,
      ),
      statement("UPDATE ambit_interactions SET state = 'used', answer = NULL WHERE id = $1", id),
    ]);
    return used?.length === 1;
  }

  async expiring(maxAgeMs: number): Promise<readonly StoredInteraction[]> {
    const rows = await this.#rows(
      statement(
        `SELECT i.* FROM ambit_interactions i JOIN ambit_runs r ON r.id = i.run_id
        WHERE i.state = 'open' AND r.state = 'ended' AND i.created_at < ${this.database.now} - CAST($1 AS BIGINT)
        ORDER BY i.created_at LIMIT 100`,
        maxAgeMs,
      ),
    );
    return rows.map(interactionOf);
  }

  async expire({ id, runId }: StoredInteraction, { text, deliveries = [] }: Expiry): Promise<boolean> {
    const expired =
      "id = $1 AND EXISTS (SELECT 1 FROM ambit_interactions WHERE id = $2 AND state = 'expiring')";
    const [marked] = await this.database.run(
      [
        // A state within this transaction only: the replica that sets it does the rest.
        statement(
          "UPDATE ambit_interactions SET state = 'expiring' WHERE id = $1 AND state = 'open' RETURNING id",
          id,
        ),
        // The first record takes the number that the result had: a reader that has the result gets the second.
        statement(
          `UPDATE ambit_runs SET events = events + 2, size = size + $3 WHERE ${expired}`,
          ...[runId, id, text.length],
        ),
        statement(
          `INSERT INTO ambit_chunks (run_id, first_event, last_event, body)
        SELECT id, events - 1, events, CAST($3 AS TEXT) FROM ambit_runs WHERE ${expired}`,
          ...[runId, id, text],
        ),
        ...deliveries.map((one) => addDelivery(this.database, one, expired, runId, id)),
        countExpiry(id, text.length),
        statement("UPDATE ambit_interactions SET state = 'expired' WHERE id = $1 AND state = 'expiring'", id),
      ],
      "end",
    );
    return marked?.length === 1;
  }

  async #rows(one: Statement, essential?: Essential): Promise<readonly Row[]> {
    const [rows = []] = await this.database.run([one], essential);
    return rows;
  }
}
