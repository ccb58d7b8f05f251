import type { Database } from "../database.js";
import { clock, type Sql, sql } from "../query.js";

/** Whether the replica in a table's row has a valid lease. */
export function lives(database: Pick<Database, "now">, table: string): Sql {
  return sql`EXISTS (SELECT 1 FROM ambit_replicas p
    WHERE p.id = ${sql.ref(`${table}.replica`)} AND p.expires_at > ${clock(database)})`;
}
