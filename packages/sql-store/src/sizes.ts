import { Columns, type Database, type Statement } from "./database.js";
import { sizeShards } from "./migrations.js";
import { asInteger, constant, locking, type Sql, sql, statement } from "./query.js";

/** The size that is counted for a run without events, since many small runs fill a disk too. */
const rowSize = 1_024;

/** The size of a row of `ambit_runs`. */
export const sizeOfRun = sql`size + ${constant(rowSize)}`;

const anyShard = () => constant(Math.floor(Math.random() * sizeShards.length));

/** Counts a run that is about to end, with a result of so many characters. */
export function countRun(id: string, fence: number, characters: number): Statement {
  const run = sql`FROM ambit_runs WHERE id = ${id} AND fence = ${fence} AND state = 'running'`;
  // A value, not a constant: the statement has one text.
  const shard = Math.floor(Math.random() * sizeShards.length);
  return statement(
    sql`UPDATE ambit_sizes SET size = size + (SELECT ${sizeOfRun} + ${asInteger(characters)} ${run})
    WHERE shard = ${shard} AND EXISTS (SELECT 1 ${run})`,
    "count run",
  );
}

/** Counts characters that an ended run gets, while this question of its expires. */
export function countExpiry(question: string, characters: number): Statement {
  return statement(
    sql`UPDATE ambit_sizes SET size = size + ${asInteger(characters)} WHERE shard = ${anyShard()}
    AND EXISTS (SELECT 1 FROM ambit_interactions WHERE id = ${question} AND state = 'expiring')`,
  );
}

/**
 * Counts an answer that an ended run gets, while its question is being answered, until the run is deleted. That of a running one is
 * used at once.
 */
export function countAnswer(question: string, characters: number): readonly Statement[] {
  const answered = sql`ambit_runs WHERE state = 'ended' AND id =
    (SELECT run_id FROM ambit_interactions WHERE id = ${question} AND state = 'answering')`;
  return countMore(answered, characters);
}

/** Counts the outcome that is kept of an answer, which this run has claimed, until the question's run is deleted. */
export function countOutcome(question: string, run: string, characters: number): readonly Statement[] {
  const asking = sql`ambit_runs WHERE state = 'ended' AND id =
    (SELECT run_id FROM ambit_interactions WHERE id = ${question} AND state = 'claimed'
      AND EXISTS (SELECT 1 FROM ambit_used_answers u WHERE u.id = ${question} AND u.run_id = ${run}))`;
  return countMore(asking, characters);
}

/** @param runs those that get more characters, after `FROM`. */
function countMore(runs: Sql, characters: number): readonly Statement[] {
  return [
    statement(
      sql`UPDATE ambit_sizes SET size = size + ${asInteger(characters)} WHERE shard = ${anyShard()}
      AND EXISTS (SELECT 1 FROM ${runs})`,
    ),
    statement(
      sql`UPDATE ambit_runs SET size = size + ${asInteger(characters)} WHERE id IN (SELECT id FROM ${runs})`,
    ),
  ];
}

/** Takes ended runs out of the count that are about to be deleted. @param chosen a condition over `ambit_runs`. */
export function uncount(chosen: Sql): Statement {
  return statement(
    sql`UPDATE ambit_sizes
    SET size = size - COALESCE((SELECT SUM(${sizeOfRun}) FROM ambit_runs WHERE ${chosen}), 0)
    WHERE shard = ${anyShard()}`,
  );
}

/** Characters of all ended runs. */
export async function keptSize(database: Database): Promise<number> {
  const [[row = {}] = []] = await database.run([
    statement(sql`SELECT CAST(SUM(size) AS BIGINT) AS size FROM ambit_sizes`),
  ]);
  return new Columns(row).number("size");
}

/** Counts all ended runs anew: a replica of an earlier version that shares the database doesn't count. */
export async function recount(database: Database): Promise<void> {
  await database.run([
    // No run ends until all are counted.
    statement(sql`SELECT shard FROM ambit_sizes ORDER BY shard${locking(database)}`),
    statement(sql`UPDATE ambit_sizes SET size = 0 WHERE shard > 0`),
    statement(
      sql`UPDATE ambit_sizes
      SET size = COALESCE((SELECT SUM(${sizeOfRun}) FROM ambit_runs WHERE state = 'ended'), 0) WHERE shard = 0`,
    ),
  ]);
}
