import { messageOf } from "@ambit/core/plugin";
import pg from "pg";
import { clientSettings, type PoolSettings } from "./pool.js";

const fix =
  'set "pooling": "transaction" in the settings of @ambit/store-postgres, which works behind every pooler of sessions or transactions, or connect to PostgreSQL itself';

/** Something on the way dropped the startup parameters: the tables would be created in another schema. */
export const searchPathIgnored = (schema: string) =>
  `the connection doesn't have the search path "${schema}": a pooler on the way, such as PgBouncer, ignores startup parameters (ignore_startup_parameters): ${fix}`;

/** PgBouncer's words for a startup parameter that it doesn't pass on, and for a mode without transactions. */
const unsupported = /unsupported startup parameter|statement pooling mode/i;

/** The error, with what to do where a pooler refused the connection. */
export function withPoolerNamed(error: unknown): unknown {
  if (!unsupported.test(messageOf(error))) return error;
  return new Error(
    `a pooler such as PgBouncer is on the way, and refused the connection (${messageOf(error)}): ${fix}`,
    { cause: error },
  );
}

/**
 * Looks whether the server's connections change between two transactions of one of ours: then another client's may see what
 * a transaction left behind, and lacks what it prepared.
 * @throws Error for a pooler of transactions
 */
export async function refusePooler(settings: PoolSettings): Promise<void> {
  if (settings.pooling === "transaction") return;
  const [one, other] = [new pg.Client(clientSettings(settings)), new pg.Client(clientSettings(settings))];
  // One that was refused ends its connection itself.
  for (const client of [one, other]) client.on("error", () => {});
  try {
    await Promise.all([one.connect(), other.connect()]);
    const first = await processOf(one);
    await other.query("BEGIN");
    const second = await processOf(other);
    const third = await processOf(one);
    await other.query("ROLLBACK");
    if (first === second || first !== third)
      throw new Error(`a pooler of transactions is on the way, such as PgBouncer: ${fix}`);
  } finally {
    await Promise.all([one.end(), other.end()]);
  }
}

async function processOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return rows[0]?.pid;
}
