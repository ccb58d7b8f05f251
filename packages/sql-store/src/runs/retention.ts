import type { Retained, Retention } from "@ambit/durable/store";
import { dayMs } from "../counting.js";
import { Columns, type Database, type Statement, statement } from "../database.js";
import { lives } from "../shared/lease.js";
import { forgetUse } from "../shared/session-use.js";
import { keptSize, recount, sizeOfRun, uncount } from "../sizes.js";

/** Runs that are deleted in one transaction: others wait for it. */
const maxDeletedAtOnce = 200;
/** Rows of a run, and their bytes, that are deleted in one transaction: a log on a full disk has no room for more. */
const portion = { rows: 1_000, bytes: 1_048_576 };

/** Runs that are no longer visible, whose rows are being deleted. */
const hidden = `SELECT id FROM ambit_runs WHERE state = 'deleted' ORDER BY id LIMIT ${maxDeletedAtOnce}`;

const lacks = (rows: string) => `NOT EXISTS (SELECT 1 FROM ambit_${rows} r WHERE r.run_id = ambit_runs.id)`;

/** Deletes ended runs with their data. */
export class RunRetention {
  #countedAt = Number.NEGATIVE_INFINITY;
  /** Whether something was deleted that copies may still hold. */
  #isScrubbed = true;

  constructor(readonly database: Database) {}

  /** False if there is none. */
  async delete(id: string): Promise<boolean> {
    const deleted = await this.#delete([id], "");
    await this.#scrub();
    return deleted === 1;
  }

  /** Deletes what has ended and is too old or too much; looks only at that. */
  async retain({ maxAgeMs, maxSize, interactionMs }: Retention): Promise<Retained> {
    if (performance.now() - this.#countedAt > dayMs) {
      await recount(this.database);
      this.#countedAt = performance.now();
    }
    const idle = `NOT ${this.#waits(interactionMs)}`;
    // What an earlier deletion couldn't finish.
    await this.#erase();
    const old = await this.#deleteAll(async () => this.#olderThan(maxAgeMs, idle));
    let excess = 0;
    const surplus = await this.#deleteAll(async () => {
      excess = Math.max(0, (await keptSize(this.database)) - maxSize);
      return excess > 0 ? oldest(excess, idle) : undefined;
    });
    await this.#forget(maxAgeMs, interactionMs);
    await this.#scrub();
    return { deleted: old + surplus, excess };
  }

  /** Whether a question of the run is open, or its answer waits for the next turn. */
  #waits(interactionMs: number): string {
    return `EXISTS (SELECT 1 FROM ambit_interactions i WHERE i.run_id = ambit_runs.id AND (i.state = 'open'
      OR (i.state = 'answered' AND i.created_at >= ${this.database.now} - ${interactionMs})))`;
  }

  #olderThan(maxAgeMs: number, idle: string): Statement {
    return statement(
      `SELECT id FROM ambit_runs WHERE state = 'ended' AND ended_at < ${this.database.now} - CAST($1 AS BIGINT)
      AND ${idle} ORDER BY ended_at, id LIMIT ${maxDeletedAtOnce}`,
      maxAgeMs,
    );
  }

  /** @param next selects the next runs to delete; undefined: there are none. */
  async #deleteAll(next: () => Promise<Statement | undefined>): Promise<number> {
    for (let total = 0; ; ) {
      const select = await next();
      const [rows = []] = select === undefined ? [] : await this.database.run([select]);
      const deleted = await this.#delete(
        rows.map((row) => new Columns(row).text("id")),
        // A message that wasn't sent yet outlives its run.
        "AND state <> 'pending'",
      );
      total += deleted;
      // None: another replica was faster.
      if (deleted === 0) return total;
    }
  }

  async #delete(ids: readonly string[], messages: string): Promise<number> {
    if (ids.length === 0) return 0;
    const { database } = this;
    const places = ids.map((_id, index) => `$${index + 1}`).join(", ");
    const chosen = `state = 'ended' AND id IN (${places})`;
    const [, , , deleted] = await database.run(
      [
        statement(`SELECT id FROM ambit_runs WHERE ${chosen} ORDER BY id${database.lock}`, ...ids),
        statement(
          `DELETE FROM ambit_deliveries WHERE run_id IN (SELECT id FROM ambit_runs WHERE ${chosen}) ${messages}`,
          ...ids,
        ),
        uncount(chosen, ...ids),
        statement(`UPDATE ambit_runs SET state = 'deleted' WHERE ${chosen} RETURNING id`, ...ids),
      ],
      "delete",
    );
    const count = deleted?.length ?? 0;
    if (count > 0) await this.#erase();
    return count;
  }

  /** Deletes the rows of hidden runs, in portions. */
  async #erase(): Promise<void> {
    for (;;) {
      const [left = []] = await this.database.run([{ text: hidden }]);
      if (left.length === 0) return;
      this.#isScrubbed = false;
      await this.database.run(
        [
          { text: `${hidden}${this.database.lock}` },
          deletePortion("ambit_interactions", "id", "payload", `run_id IN (${hidden})`),
          deletePortion("ambit_chunks", "run_id, first_event", "body", `run_id IN (${hidden})`),
          deletePortion(
            "ambit_runs",
            "id",
            "result",
            `state = 'deleted' AND ${lacks("interactions")} AND ${lacks("chunks")}`,
          ),
        ],
        "delete",
      );
    }
  }

  /** What can't be overwritten now is with the next clean-up. */
  async #scrub(): Promise<void> {
    if (!this.#isScrubbed) this.#isScrubbed = (await this.database.scrub?.()) ?? true;
  }

  async #forget(maxAgeMs: number, interactionMs: number): Promise<void> {
    const { database } = this;
    const { now } = database;
    const older = (column: string) => `${column} < ${now} - CAST($1 AS BIGINT)`;
    await database.run(
      [
        statement(
          `DELETE FROM ambit_deliveries WHERE state <> 'pending' AND ${older("created_at")}`,
          maxAgeMs,
        ),
        // Longer than any run that could use an answer again.
        statement(
          `DELETE FROM ambit_used_answers WHERE used_at < ${now} - 4 * CAST($1 AS BIGINT)`,
          Math.max(maxAgeMs, interactionMs),
        ),
        statement(
          `DELETE FROM ambit_sessions WHERE ${older("used_at")} AND NOT ${lives(database, "ambit_sessions")}`,
          maxAgeMs,
        ),
        forgetUse(database),
        statement(`DELETE FROM ambit_starts WHERE ${older("started_at")}`, maxAgeMs),
        statement(`DELETE FROM ambit_replicas WHERE ${older("expires_at")}`, maxAgeMs),
      ],
      "delete",
    );
  }
}

/** At least one row, if there is one. @param body the column that may be large. */
function deletePortion(table: string, key: string, body: string, condition: string): Statement {
  return {
    text: `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM (
      SELECT ${key}, SUM(bytes) OVER (ORDER BY ${key}) - bytes AS before_it FROM (
        SELECT ${key}, COALESCE(OCTET_LENGTH(${body}), 0) AS bytes FROM ${table} WHERE ${condition}
        ORDER BY ${key} LIMIT ${portion.rows}) AS next_rows
    ) AS measured WHERE before_it < ${portion.bytes})`,
  };
}

/** The runs that ended first, until they hold this many characters. */
function oldest(excess: number, idle: string): Statement {
  return statement(
    `SELECT id FROM (
      SELECT id, SUM(${sizeOfRun}) OVER (ORDER BY ended_at, id) - (${sizeOfRun}) AS before_it
      FROM (SELECT id, size, ended_at FROM ambit_runs WHERE state = 'ended' AND ${idle}
        ORDER BY ended_at, id LIMIT ${maxDeletedAtOnce}) AS first_ended
    ) AS measured WHERE before_it < CAST($1 AS BIGINT)`,
    excess,
  );
}
