import type { Store } from "@ambit/durable/store";
import { dayMs, forgetTallies, keptSize, recount, sizeOfRun, uncount } from "./counts.js";
import { Columns, type Database, type Statement } from "./database.js";
import { asInteger, clock, constant, list, locking, type Sql, sql, statement } from "./query.js";
import { forgetUse, lives } from "./sessions.js";

/** Runs that are deleted in one transaction: others wait for it. */
const maxDeletedAtOnce = 200;
/** Rows of a run, and their bytes, that are deleted in one transaction: a log on a full disk has no room for more. */
const portion = { rows: 1_000, bytes: 1_048_576 };

/** Runs that are no longer visible, whose rows are being deleted. */
const hidden = sql`SELECT id FROM ambit_runs WHERE state = 'deleted' ORDER BY id LIMIT ${constant(maxDeletedAtOnce)}`;

const lacks = (rows: string) =>
  sql`NOT EXISTS (SELECT 1 FROM ${sql.table(`ambit_${rows}`)} r WHERE r.run_id = ambit_runs.id)`;

/** Deletes ended runs with their data. */
export function retentionRows(database: Database): Pick<Store, "delete" | "retain"> {
  let countedAt = Number.NEGATIVE_INFINITY;
  /** Whether nothing was deleted that copies may still hold. */
  let isScrubbed = true;

  /** Whether a question of the run is open, or its answer waits for the next turn. */
  function waits(interactionMs: number): Sql {
    return sql`EXISTS (SELECT 1 FROM ambit_interactions i WHERE i.run_id = ambit_runs.id AND (i.state = 'open'
      OR (i.state IN ('answered', 'claimed') AND i.created_at >= ${clock(database)} - ${asInteger(interactionMs)})))`;
  }

  function olderThan(maxAgeMs: number, idle: Sql): Sql {
    return sql`SELECT id FROM ambit_runs
      WHERE state = 'ended' AND ended_at < ${clock(database)} - ${asInteger(maxAgeMs)}
      AND ${idle} ORDER BY ended_at, id LIMIT ${constant(maxDeletedAtOnce)}`;
  }

  /** @param next selects the next runs to delete; undefined: there are none. */
  async function deleteAll(next: () => Promise<Sql | undefined>): Promise<number> {
    for (let total = 0; ; ) {
      const select = await next();
      const [rows = []] = select === undefined ? [] : await database.run([statement(select)]);
      const deleted = await deleteChosen(
        rows.map((row) => new Columns(row).text("id")),
        // A message that wasn't sent yet outlives its run.
        sql`state <> 'pending'`,
      );
      total += deleted;
      // None: another replica was faster.
      if (deleted === 0) return total;
    }
  }

  async function deleteChosen(ids: readonly string[], messages: Sql): Promise<number> {
    if (ids.length === 0) return 0;
    const chosen = sql`state = 'ended' AND id IN ${list(ids)}`;
    const [, , , deleted] = await database.run(
      [
        statement(sql`SELECT id FROM ambit_runs WHERE ${chosen} ORDER BY id${locking(database)}`),
        statement(
          sql`DELETE FROM ambit_deliveries
          WHERE run_id IN (SELECT id FROM ambit_runs WHERE ${chosen}) AND ${messages}`,
        ),
        uncount(chosen),
        statement(sql`UPDATE ambit_runs SET state = 'deleted' WHERE ${chosen} RETURNING id`),
      ],
      "delete",
    );
    const count = deleted?.length ?? 0;
    if (count > 0) await erase();
    return count;
  }

  /** Deletes the rows of hidden runs, in portions. */
  async function erase(): Promise<void> {
    for (;;) {
      const [left = []] = await database.run([statement(hidden)]);
      if (left.length === 0) return;
      isScrubbed = false;
      await database.run(
        [
          statement(sql`${hidden}${locking(database)}`),
          deletePortion("ambit_interactions", ["id"], "payload", sql`run_id IN (${hidden})`),
          deletePortion("ambit_chunks", ["run_id", "first_event"], "body", sql`run_id IN (${hidden})`),
          deletePortion(
            "ambit_runs",
            ["id"],
            "result",
            sql`state = 'deleted' AND ${lacks("interactions")} AND ${lacks("chunks")}`,
          ),
        ],
        "delete",
      );
    }
  }

  /** What can't be overwritten now is with the next clean-up. */
  async function scrub(): Promise<void> {
    if (!isScrubbed) isScrubbed = (await database.scrub?.()) ?? true;
  }

  async function forget(maxAgeMs: number, interactionMs: number): Promise<void> {
    const older = (column: string, ms = maxAgeMs) =>
      sql`${sql.ref(column)} < ${clock(database)} - ${asInteger(ms)}`;
    await database.run(
      [
        statement(sql`DELETE FROM ambit_deliveries WHERE state <> 'pending' AND ${older("created_at")}`),
        // This is longer than any run that could use an answer again.
        statement(
          sql`DELETE FROM ambit_used_answers WHERE ${older("used_at", 4 * Math.max(maxAgeMs, interactionMs))}`,
        ),
        statement(
          sql`DELETE FROM ambit_sessions WHERE ${older("used_at")} AND NOT ${lives(database, "ambit_sessions")}`,
        ),
        forgetUse(database),
        forgetTallies(database),
        statement(sql`DELETE FROM ambit_starts WHERE ${older("started_at")}`),
        statement(sql`DELETE FROM ambit_replicas WHERE ${older("expires_at")}`),
      ],
      "delete",
    );
  }

  return {
    /** Deletes a run with its data. False if there is none. */
    async delete(id) {
      const deleted = await deleteChosen([id], sql`1 = 1`);
      await scrub();
      return deleted === 1;
    },

    /** Deletes what has ended and is too old or too much; looks only at that. */
    async retain({ maxAgeMs, maxSize, interactionMs, isFair = false }) {
      if (performance.now() - countedAt > dayMs) {
        await recount(database);
        countedAt = performance.now();
      }
      const idle = sql`NOT ${waits(interactionMs)}`;
      // What an earlier deletion couldn't finish.
      await erase();
      const old = await deleteAll(async () => olderThan(maxAgeMs, idle));
      let excess = 0;
      const surplus = await deleteAll(async () => {
        excess = Math.max(0, (await keptSize(database)) - maxSize);
        if (excess === 0) return undefined;
        return isFair ? oldestOfLargest(excess, idle) : oldest(excess, idle);
      });
      await forget(maxAgeMs, interactionMs);
      await scrub();
      return { deleted: old + surplus, excess };
    },
  };
}

/** Deletes a portion of the rows, at least one if there is any. @param body the column that may be large. */
function deletePortion(table: string, key: readonly string[], body: string, condition: Sql): Statement {
  const [rows, columns] = [sql.table(table), sql.join(key.map((column) => sql.ref(column)))];
  return statement(
    sql`DELETE FROM ${rows} WHERE (${columns}) IN (SELECT ${columns} FROM (
      SELECT ${columns}, SUM(bytes) OVER (ORDER BY ${columns}) - bytes AS before_it FROM (
        SELECT ${columns}, COALESCE(OCTET_LENGTH(${sql.ref(body)}), 0) AS bytes FROM ${rows} WHERE ${condition}
        ORDER BY ${columns} LIMIT ${constant(portion.rows)}) AS next_rows
    ) AS measured WHERE before_it < ${constant(portion.bytes)})`,
  );
}

/** The runs that ended first, until they hold this many characters. */
function oldest(excess: number, idle: Sql): Sql {
  return sql`SELECT id FROM (
      SELECT id, SUM(${sizeOfRun}) OVER (ORDER BY ended_at, id) - (${sizeOfRun}) AS before_it
      FROM (SELECT id, size, ended_at FROM ambit_runs WHERE state = 'ended' AND ${idle}
        ORDER BY ended_at, id LIMIT ${constant(maxDeletedAtOnce)}) AS first_ended
    ) AS measured WHERE before_it < ${asInteger(excess)}`;
}

/**
 * The runs to delete if each deletion takes the oldest run of the project that holds the most. Summed from a project's newest
 * run on, the sum at its oldest run is all that the project holds, so the runs with the largest sums go first.
 */
function oldestOfLargest(excess: number, idle: Sql): Sql {
  return sql`SELECT id FROM (
      SELECT id, SUM(bytes) OVER (ORDER BY held DESC, id) - bytes AS before_it FROM (
        SELECT id, ${sizeOfRun} AS bytes,
          SUM(${sizeOfRun}) OVER (PARTITION BY project ORDER BY ended_at DESC, id DESC) AS held
        FROM ambit_runs WHERE state = 'ended' AND ${idle}) AS summed
    ) AS measured WHERE before_it < ${asInteger(excess)} LIMIT ${constant(maxDeletedAtOnce)}`;
}
