import type { Delivery, NewDelivery } from "@ambit/core/plugin";
import { type Database, type Row, statement } from "./database.js";
import { deliveryOf } from "./rows.js";
import { Where } from "./where.js";

/** Messages that wait for their receivers, and what became of them. */
export class Deliveries {
  constructor(readonly database: Database) {}

  async enqueue({ id, runId, project, url, event, body }: NewDelivery): Promise<void> {
    const { now } = this.database;
    await this.database.run([
      statement(
        `INSERT INTO ambit_deliveries (id, run_id, project, url, event, body, state, due_at, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, 'pending', ${now}, ${now}) ON CONFLICT (id) DO NOTHING`,
        ...[id, runId, project, url, event, body],
      ),
    ]);
  }

  async take(limit: number, reserveMs: number): Promise<readonly Delivery[]> {
    const { now, lock } = this.database;
    const skipping = lock === "" ? "" : `${lock} SKIP LOCKED`;
    const [rows = []] = await this.database.run([
      statement(
        `UPDATE ambit_deliveries SET due_at = ${now} + CAST($2 AS BIGINT), attempts = attempts + 1
        WHERE id IN (SELECT id FROM ambit_deliveries WHERE state = 'pending' AND due_at <= ${now}
          ORDER BY due_at LIMIT $1${skipping}) RETURNING *`,
        ...[limit, reserveMs],
      ),
    ]);
    return rows.map(deliveryOf);
  }

  async settle(
    id: string,
    outcome: { readonly state: Delivery["state"]; readonly retryInMs?: number; readonly error?: string },
  ): Promise<void> {
    await this.database.run([
      statement(
        `UPDATE ambit_deliveries SET state = $2, error = $3, due_at = ${this.database.now} + CAST($4 AS BIGINT)
        WHERE id = $1 AND state = 'pending'`,
        ...[id, outcome.state, outcome.error, outcome.retryInMs ?? 0],
      ),
    ]);
  }

  async list(query: {
    readonly project?: string | null;
    readonly runId?: string;
    readonly state?: Delivery["state"];
    readonly limit: number;
  }): Promise<readonly Delivery[]> {
    const where = new Where().equals("project", query.project).equals("run_id", query.runId);
    where.equals("state", query.state);
    const most = where.value(query.limit);
    const [rows = []]: readonly (readonly Row[])[] = await this.database.run([
      {
        text: `SELECT * FROM ambit_deliveries ${where} ORDER BY created_at DESC, id DESC LIMIT ${most}`,
        values: where.values,
      },
    ]);
    return rows.map(deliveryOf);
  }
}
