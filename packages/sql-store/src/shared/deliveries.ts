import type { Backlog, Delivery, DeliveryOutcome, DeliveryQuery, NewDelivery } from "@ambit/durable/store";
import {
  Columns,
  type Database,
  lockSkipping,
  type Row,
  type Statement,
  statement,
  type Value,
} from "../database.js";
import { deliveryOf } from "../rows.js";
import { Where } from "../where.js";

/**
 * Adds a message for a run that meets a condition.
 * @param condition over `ambit_runs`, with `$1` and `$2`.
 */
export function addDelivery(
  { now }: Pick<Database, "now">,
  { id, target, host, event, body }: NewDelivery,
  condition: string,
  ...values: readonly [Value, Value]
): Statement {
  return statement(
    `INSERT INTO ambit_deliveries (id, run_id, project, url, host, event, body, state, due_at, created_at)
    SELECT CAST($3 AS TEXT), id, project, CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS TEXT), CAST($7 AS TEXT),
      'pending', ${now}, ${now} FROM ambit_runs WHERE ${condition} ON CONFLICT (id) DO NOTHING`,
    ...[...values, id, target, host, event, body],
  );
}

/** Messages to receivers, and their state. */
export class Deliveries {
  constructor(readonly database: Database) {}

  async take(
    limit: number,
    reserveMs: number,
    except: { readonly hosts: readonly string[]; readonly projects: readonly string[] } = {
      hosts: [],
      projects: [],
    },
  ): Promise<readonly Delivery[]> {
    const { now } = this.database;
    const values: (string | number)[] = [limit, reserveMs];
    const without = (column: string, names: readonly string[]) => {
      if (names.length === 0) return "";
      const places = names.map((name) => `$${values.push(name)}`);
      return `AND COALESCE(${column}, '') NOT IN (${places.join(", ")})`;
    };
    const rows = await this.#rows({
      text: `UPDATE ambit_deliveries SET due_at = ${now} + CAST($2 AS BIGINT), attempts = attempts + 1
        WHERE id IN (SELECT id FROM ambit_deliveries WHERE state = 'pending' AND due_at <= ${now}
          ${without("host", except.hosts)} ${without("project", except.projects)}
          ORDER BY due_at LIMIT $1${lockSkipping(this.database)}) RETURNING *`,
      values,
    });
    return rows.map(deliveryOf);
  }

  async settle(
    id: string,
    attempt: number,
    { state, status, error, retryInMs = 0 }: DeliveryOutcome,
  ): Promise<void> {
    // A delivered message stays delivered, even if its sender recorded the delivery too late.
    const isLast = state === "delivered" ? "attempts >= $7" : "attempts = $7";
    await this.#rows(
      statement(
        `UPDATE ambit_deliveries SET state = $2, last_status = $3, error = $4,
          due_at = ${this.database.now} + CAST($5 AS BIGINT)
        WHERE id = $1 AND state <> $6 AND ${isLast}`,
        ...[id, state, status, error, retryInMs, "delivered", attempt],
      ),
    );
  }

  async again(id: string, project: string | null | undefined): Promise<Delivery | undefined> {
    const where = new Where().equals("id", id).equals("project", project);
    const [row] = await this.#rows({
      text: `UPDATE ambit_deliveries SET state = 'pending', due_at = ${this.database.now}, earlier_attempts = attempts
        ${where} RETURNING *`,
      values: where.values,
    });
    return row === undefined ? undefined : deliveryOf(row);
  }

  async list({ project, state, runId, after, limit }: DeliveryQuery): Promise<readonly Delivery[]> {
    const where = new Where().equals("project", project).equals("state", state).equals("run_id", runId);
    where.before("ambit_deliveries", after);
    const max = where.value(limit);
    const rows = await this.#rows({
      text: `SELECT * FROM ambit_deliveries ${where} ORDER BY created_at DESC, id DESC LIMIT ${max}`,
      values: where.values,
    });
    return rows.map(deliveryOf);
  }

  async backlog(project: string | null | undefined): Promise<Backlog> {
    const where = new Where().equals("project", project);
    const of = where.toString().replace("WHERE", "AND");
    const count = (table: string, state: string) =>
      `(SELECT COUNT(*) FROM ${table} WHERE state = '${state}' ${of})`;
    const [row = {}] = await this.#rows({
      text: `SELECT ${count("ambit_runs", "queued")} AS queued, ${count("ambit_deliveries", "pending")} AS pending,
        ${count("ambit_deliveries", "failed")} AS failed`,
      values: where.values,
    });
    const columns = new Columns(row);
    return {
      queuedRuns: columns.number("queued"),
      pendingDeliveries: columns.number("pending"),
      failedDeliveries: columns.number("failed"),
    };
  }

  async #rows(one: Statement): Promise<readonly Row[]> {
    const [rows = []] = await this.database.run([one]);
    return rows;
  }
}
