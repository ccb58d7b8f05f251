import { type QuestionStep, type StoredSettlement, statesBefore, stepAtLostRun } from "@ambit/durable/store";
import type { Database, Statement } from "../database.js";
import { clock, list, type Sql, sql, statement } from "../query.js";
import { countOutcome } from "../sizes.js";

const possible = (step: QuestionStep): Sql => sql`state IN ${list(statesBefore(step))}`;

/**
 * Which run uses which answer. `ambit_used_answers` has each answer that was ever claimed, also of a question whose run is
 * deleted, and its run until the outcome is known.
 */
export class ClaimRows {
  constructor(readonly database: Database) {}

  async claim(id: string, run: string): Promise<boolean> {
    const results = await this.database.run([
      statement(
        sql`INSERT INTO ambit_used_answers (id, used_at, run_id) SELECT id, ${clock(this.database)}, ${run}
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
  }

  async settle(id: string, run: string, settlement: StoredSettlement): Promise<void> {
    const { step } = settlement;
    const row = sql`id = ${id} AND ${possible(step)} AND ${claimedBy(id, run)}`;
    const ours = sql`id = ${id} AND run_id = ${run}`;
    if (step === "return") {
      await this.database.run([
        statement(sql`UPDATE ambit_interactions SET state = 'answered' WHERE ${row}`),
        statement(sql`DELETE FROM ambit_used_answers WHERE ${ours}`),
      ]);
      return;
    }
    const { outcome } = step === "spend" ? settlement : {};
    await this.database.run([
      ...(outcome === undefined ? [] : countOutcome(id, run, outcome.length)),
      statement(
        sql`UPDATE ambit_interactions SET state = ${step === "spend" ? "used" : "unknown"}, answer = ${outcome ?? null}
        WHERE ${row}`,
      ),
      statement(sql`UPDATE ambit_used_answers SET run_id = NULL WHERE ${ours}`),
    ]);
  }

  async drop(id: string): Promise<void> {
    await this.database.run([
      statement(
        sql`INSERT INTO ambit_used_answers (id, used_at) VALUES (${id}, ${clock(this.database)})
        ON CONFLICT (id) DO NOTHING`,
      ),
      statement(
        sql`UPDATE ambit_interactions SET state = 'used', answer = NULL WHERE id = ${id} AND ${possible("drop")}`,
      ),
    ]);
  }
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
