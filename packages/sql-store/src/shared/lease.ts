import type { Database } from "../database.js";

/** Whether the replica in a table's row has a valid lease. */
export function lives({ now }: Pick<Database, "now">, table: string): string {
  return `EXISTS (SELECT 1 FROM ambit_replicas p WHERE p.id = ${table}.replica AND p.expires_at > ${now})`;
}
