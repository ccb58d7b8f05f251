import { Columns, type Database, type Statement, statement } from "./database.js";

/** Rows that count what is kept: a writer locks its row until its commit, so there are several to choose from. */
export const sizeShards: readonly number[] = Array.from({ length: 16 }, (_, shard) => shard);

/** The size that is counted for a run without events, since many small runs fill a disk too. */
const rowSize = 1_024;

/** The size of a row of `ambit_runs`, as an expression. */
export const sizeOfRun = `size + ${rowSize}`;

const anyShard = () => Math.floor(Math.random() * sizeShards.length);

/** Counts a run that is about to end, with a result of so many characters. */
export function countRun(id: string, fence: number, characters: number): Statement {
  const run = "FROM ambit_runs WHERE id = $1 AND fence = $2 AND state = 'running'";
  return statement(
    `UPDATE ambit_sizes SET size = size + (SELECT ${sizeOfRun} + CAST($3 AS BIGINT) ${run})
    WHERE shard = $4 AND EXISTS (SELECT 1 ${run})`,
    ...[id, fence, characters, anyShard()],
  );
}

/** Counts characters that an ended run gets, while this question of its expires. */
export function countExpiry(question: string, characters: number): Statement {
  return statement(
    `UPDATE ambit_sizes SET size = size + CAST($2 AS BIGINT)
    WHERE shard = $3 AND EXISTS (SELECT 1 FROM ambit_interactions WHERE id = $1 AND state = 'expiring')`,
    ...[question, characters, anyShard()],
  );
}

/** Takes ended runs out of the count that are about to be deleted. @param chosen a condition over `ambit_runs`. */
export function uncount(chosen: string, ...ids: readonly string[]): Statement {
  return statement(
    `UPDATE ambit_sizes SET size = size - COALESCE((SELECT SUM(${sizeOfRun}) FROM ambit_runs WHERE ${chosen}), 0)
    WHERE shard = ${anyShard()}`,
    ...ids,
  );
}

/** Characters of all ended runs. */
export async function keptSize(database: Database): Promise<number> {
  const [[row = {}] = []] = await database.run([
    statement("SELECT CAST(SUM(size) AS BIGINT) AS size FROM ambit_sizes"),
  ]);
  return new Columns(row).number("size");
}

/** Counts all ended runs anew: a replica of an earlier version that shares the database doesn't count. */
export async function recount(database: Database): Promise<void> {
  await database.run([
    // No run ends until all are counted.
    statement(`SELECT shard FROM ambit_sizes ORDER BY shard${database.lock}`),
    statement("UPDATE ambit_sizes SET size = 0 WHERE shard > 0"),
    statement(
      `UPDATE ambit_sizes SET size = COALESCE((SELECT SUM(${sizeOfRun}) FROM ambit_runs WHERE state = 'ended'), 0)
      WHERE shard = 0`,
    ),
  ]);
}
