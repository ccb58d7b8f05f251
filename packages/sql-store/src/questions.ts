import { type QuestionStep, type Store, statesBefore, stepAtLostRun } from "@ambit/durable/store";
import { countAnswer, countExpiry, countOutcome } from "./counts.js";
import type { Database, Statement } from "./database.js";
import { addDelivery } from "./deliveries.js";
import {
  all,
  asInteger,
  asText,
  before,
  clock,
  equal,
  list,
  locking,
  rowsOf,
  type Sql,
  sql,
  statement,
} from "./query.js";
import { interactionOf } from "./rows.js";

const possible = (step: QuestionStep): Sql => sql`state IN ${list(statesBefore(step))}`;

/**
 * Which run uses which answer. `ambit_used_answers` has each answer that was ever claimed, also of a question whose run is
 * deleted, and its run until the outcome is known.
 */
export function claimRows(database: Database): Pick<Store, "claimAnswer" | "settleAnswer" | "dropAnswer"> {
  return {
    async claimAnswer(id, run) {
      const results = await database.run([
        statement(
          sql`INSERT INTO ambit_used_answers (id, used_at, run_id) SELECT id, ${clock(database)}, ${run}
          FROM (SELECT CAST(${id} AS TEXT) AS id) AS claim
          WHERE EXISTS (SELECT 1 FROM ambit_runs WHERE id = ${run} AND state = 'running')
          AND NOT EXISTS (SELECT 1 FROM ambit_interactions WHERE id = ${id} AND NOT ${possible("claim")})
          ON CONFLICT (id) DO NOTHING`,
        ),
        statement(
          sql`UPDATE ambit_interactions SET state = 'claimed'
          WHERE id = ${id} AND ${possible("claim")} AND ${claimedBy(id, run)}`,
        ),
        statement(sql`SELECT id FROM ambit_used_answers WHERE id = ${id} AND run_id = ${run}`),
      ]);
      return results.at(-1)?.length === 1;
    },

    async settleAnswer(id, run, settlement) {
      const { step } = settlement;
      const row = sql`id = ${id} AND ${possible(step)} AND ${claimedBy(id, run)}`;
      const ours = sql`id = ${id} AND run_id = ${run}`;
      if (step === "return") {
        await database.run([
          statement(sql`UPDATE ambit_interactions SET state = 'answered' WHERE ${row}`),
          statement(sql`DELETE FROM ambit_used_answers WHERE ${ours}`),
        ]);
        return;
      }
      const { outcome } = step === "spend" ? settlement : {};
      await database.run([
        ...(outcome === undefined ? [] : countOutcome(id, run, outcome.length)),
        statement(
          sql`UPDATE ambit_interactions SET state = ${step === "spend" ? "used" : "unknown"}, answer = ${outcome ?? null}
          WHERE ${row}`,
        ),
        statement(sql`UPDATE ambit_used_answers SET run_id = NULL WHERE ${ours}`),
      ]);
    },

    async dropAnswer(id) {
      await database.run([
        statement(
          sql`INSERT INTO ambit_used_answers (id, used_at) VALUES (${id}, ${clock(database)})
          ON CONFLICT (id) DO NOTHING`,
        ),
        statement(
          sql`UPDATE ambit_interactions SET state = 'used', answer = NULL WHERE id = ${id} AND ${possible("drop")}`,
        ),
      ]);
    },
  };
}

/** What becomes of the answers that a run still has when it ends. @param isEnded a condition over `ambit_runs`. */
export function endClaims(run: string, isEnded: Sql): readonly Statement[] {
  const ended = sql`EXISTS (SELECT 1 FROM ambit_runs WHERE ${isEnded})`;
  const claimed = sql`state = 'claimed' AND id IN (SELECT id FROM ambit_used_answers WHERE run_id = ${run}) AND ${ended}`;
  const lost = sql`kind IN ${list(["user_approval", "user_input", "client_tool"].filter((kind) => stepAtLostRun(kind) === "lose"))}`;
  return [
    statement(
      sql`UPDATE ambit_interactions SET state = 'unknown', answer = NULL WHERE ${claimed} AND ${lost}`,
      "lose answers",
    ),
    statement(sql`UPDATE ambit_interactions SET state = 'answered' WHERE ${claimed}`, "return answers"),
    statement(
      sql`DELETE FROM ambit_used_answers WHERE run_id = ${run} AND ${ended}
      AND id IN (SELECT id FROM ambit_interactions WHERE state = 'answered')`,
      "release answers",
    ),
    statement(
      sql`UPDATE ambit_used_answers SET run_id = NULL WHERE run_id = ${run} AND ${ended}`,
      "end claims",
    ),
  ];
}

const claimedBy = (id: string, run: string) =>
  sql`EXISTS (SELECT 1 FROM ambit_used_answers u WHERE u.id = ${id} AND u.run_id = ${run})`;

/** Questions of runs, and their answers. */
export function questionRows(
  database: Database,
): Pick<Store, "interactions" | "answer" | "nameAnswerer" | "expiring" | "expire"> {
  return {
    async interactions(query) {
      const {
        id,
        project,
        state,
        runId,
        session,
        after,
        limit,
        maxCharacters,
        maxAgeMs,
        without = [],
      } = query;
      const wanted = [
        ...equal({ id, project, state, run_id: runId, session }),
        ...(query.holds === true
          ? [sql`(state = 'open' OR (state IN ('answered', 'used') AND answer IS NOT NULL))`]
          : []),
        ...(maxAgeMs === undefined ? [] : [sql`created_at >= ${clock(database)} - ${asInteger(maxAgeMs)}`]),
        ...before("ambit_interactions", after, project),
      ];
      const order = sql`ORDER BY created_at DESC, id DESC`;
      const payload = without.includes("payload") ? sql`'' AS payload` : sql`payload`;
      const answer = without.includes("answer") ? sql`NULL AS answer` : sql`answer`;
      const page = sql`WHERE ${all(wanted)} ${order} LIMIT ${limit}`;
      const rows = await rowsOf(
        database,
        sql`SELECT id, run_id, project, session, kind, state, created_at, answered_at, answerer, ${payload}, ${answer}
          FROM ambit_interactions ${maxCharacters === undefined ? page : sql`WHERE ${holding(maxCharacters, page, order)} ${order}`}`,
      );
      return rows.map(interactionOf);
    },

    async answer(id, answer, maxCharacters) {
      const others = sql`SELECT COALESCE(SUM(OCTET_LENGTH(o.answer)), 0) FROM ambit_interactions o
        WHERE o.run_id = ambit_interactions.run_id AND o.state = 'answered'`;
      const hasRoom = sql`(${others}) + ${asInteger(answer.length)} <= ${asInteger(maxCharacters)}`;
      const results = await database.run([
        // It may end meanwhile, and is counted then. Until this is committed, no other question of it is answered.
        statement(
          sql`SELECT id FROM ambit_runs WHERE id = (SELECT run_id FROM ambit_interactions WHERE id = ${id})
          ${locking(database)}`,
        ),
        // A state within this transaction only: a second answer changes and counts nothing.
        statement(
          sql`UPDATE ambit_interactions SET state = 'answering' WHERE id = ${id} AND state = 'open' AND ${hasRoom}`,
        ),
        ...countAnswer(id, answer.length),
        statement(
          sql`UPDATE ambit_interactions
          SET state = 'answered', answer = ${answer}, answered_at = ${clock(database)}
          WHERE id = ${id} AND state = 'answering'`,
        ),
        statement(sql`SELECT * FROM ambit_interactions WHERE id = ${id}`),
      ]);
      const [row] = results.at(-1) ?? [];
      return row === undefined ? undefined : interactionOf(row);
    },

    async nameAnswerer(id, answerer) {
      await rowsOf(
        database,
        sql`UPDATE ambit_interactions
          SET answerer = ${answerer}, answered_at = COALESCE(answered_at, ${clock(database)})
          WHERE id = ${id} AND answerer IS NULL`,
      );
    },

    async expiring(maxAgeMs, maxCharacters) {
      const order = sql`ORDER BY created_at, id`;
      const page = sql`WHERE state = 'open' AND created_at < ${clock(database)} - ${asInteger(maxAgeMs)}
        AND EXISTS (SELECT 1 FROM ambit_runs r WHERE r.id = run_id AND r.state = 'ended') ${order} LIMIT 100`;
      const rows = await rowsOf(
        database,
        sql`SELECT * FROM ambit_interactions WHERE ${holding(maxCharacters, page, order)} ${order}`,
      );
      return rows.map(interactionOf);
    },

    async expire({ id, runId }, { text, deliveries = [] }) {
      const expired = sql`id = ${runId}
        AND EXISTS (SELECT 1 FROM ambit_interactions WHERE id = ${id} AND state = 'expiring')`;
      const [marked] = await database.run(
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
          ...deliveries.map((delivery) => addDelivery(database, delivery, expired)),
          countExpiry(id, text.length),
          statement(
            sql`UPDATE ambit_interactions SET state = 'expired' WHERE id = ${id} AND state = 'expiring'`,
          ),
        ],
        "end",
      );
      return marked?.length === 1;
    },
  };
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
