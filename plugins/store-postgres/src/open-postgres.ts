import { StoreFailed } from "@ambit/core";
import { codeOf, type Log, messageOf } from "@ambit/core/plugin";
import type { Store } from "@ambit/durable/store";
import {
  type ChunkToAppend,
  type Database,
  diskFull,
  type Row,
  type Statement,
  sqlStore,
} from "@ambit/sql-store";
import { migrationsFrom, schemaVersion } from "@ambit/sql-store/schema";
import pg from "pg";

export interface PoolSettings {
  readonly url?: string | undefined;
  readonly schema: string;
  readonly connections: number;
  readonly pooling: "none" | "transaction";
}

/**
 * Connects, and brings the schema up to date.
 * @throws Error also for a pooler that the settings don't name: it would lose runs
 */
export async function openPostgres(settings: PoolSettings, log: Log): Promise<Store> {
  const pool = newPool(settings, log);
  const database = new PostgresDatabase(pool, settings);
  try {
    await refusePooler(settings);
    await migrate(database, settings.schema);
  } catch (error) {
    await pool.end();
    throw withPoolerNamed(error);
  }
  return sqlStore(database);
}

/** Names the lock among the advisory locks of this database: "ambit" in ASCII. */
const lockId = 0x61_6d_62_69_74;

/** Brings the schema up to date, once: other replicas wait for it. @throws Error for a newer one */
async function migrate(database: PostgresDatabase, schema: string): Promise<void> {
  await database.transaction(async (client) => {
    await client.query("SELECT pg_advisory_xact_lock($1)", [lockId]);
    // IF NOT EXISTS asks a cache, which may be older than the lock where connections are shared.
    const { rowCount: exists } = await client.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [
      schema,
    ]);
    if (exists === 0) await client.query(`CREATE SCHEMA "${schema}"`);
    const { rows: seen } = await client.query<{ schema: string | null }>("SELECT current_schema() AS schema");
    // Before anything is created in another schema, beside the tables that the other replicas use.
    if (seen[0]?.schema !== schema) throw new Error(searchPathIgnored(schema));
    await client.query("CREATE TABLE IF NOT EXISTS ambit_schema (version BIGINT NOT NULL)");
    const { rows } = await client.query<{ version: number }>("SELECT version FROM ambit_schema");
    const version = rows[0]?.version ?? 0;
    await all(client, migrationsFrom(version));
    if (rows.length === 0) await client.query("INSERT INTO ambit_schema VALUES ($1)", [schemaVersion]);
    else await client.query("UPDATE ambit_schema SET version = $1", [schemaVersion]);
    await compressByLz4(client);
  });
}

/** PostgreSQL compresses large texts by its own method otherwise, which takes it several times the CPU. From version 14. */
async function compressByLz4(client: pg.ClientBase): Promise<void> {
  const { rowCount: hasLz4 } = await client.query(
    "SELECT 1 FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)",
  );
  if (hasLz4 !== 1) return;
  // Only what isn't set yet: it waits for all who read the table.
  const { rows } = await client.query<{ table: string; column: string }>(
    `SELECT attrelid::regclass AS table, attname AS column FROM pg_attribute
    WHERE attcompression <> 'l' AND (attrelid, attname) IN
      (('ambit_chunks'::regclass, 'body'), ('ambit_runs'::regclass, 'result'))`,
  );
  for (const { table, column } of rows)
    await client.query(`ALTER TABLE ${table} ALTER COLUMN ${column} SET COMPRESSION lz4`);
}

/** Milliseconds to connect, and for one statement. */
const connectMs = 5_000;
const statementMs = 30_000;
/** A replica that stops during a transaction must not lock its rows longer than this. */
const idleInTransactionMs = 5_000;
/** PostgreSQL's type of 64-bit integers; the store's are counts and milliseconds, which fit into a number. */
const int8 = 20;

/** The settings of one connection, with the schema as search path. A pooler of transactions takes none of these for a session. */
function clientSettings({ url, schema, pooling }: PoolSettings): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: `ambit ${schema}`,
    connectionTimeoutMillis: connectMs,
    query_timeout: statementMs,
    keepAlive: true,
    ...(pooling === "transaction"
      ? {}
      : {
          options: `-c search_path=${schema}`,
          statement_timeout: statementMs,
          idle_in_transaction_session_timeout: idleInTransactionMs,
        }),
  };
}

/** The same settings for one transaction. */
function transactionSettings(schema: string): Statement {
  const settings = {
    search_path: schema,
    statement_timeout: String(statementMs),
    idle_in_transaction_session_timeout: String(idleInTransactionMs),
  };
  const set = Object.keys(settings).map((name, at) => `set_config('${name}', $${at + 1}, true)`);
  return { text: `SELECT ${set.join(", ")}`, values: Object.values(settings) };
}

function newPool(settings: PoolSettings, log: Log): pg.Pool {
  const pool = new pg.Pool({
    ...clientSettings(settings),
    max: settings.connections,
    allowExitOnIdle: true,
    // A transaction's statements are sent together, and answered together.
    pipeline: true,
    types: {
      getTypeParser: (id: number, format?: "text" | "binary") =>
        id === int8 ? Number : pg.types.getTypeParser(id, format ?? "text"),
    },
  });
  // If the connection is in use, its pending queries fail too.
  pool.on("connect", (client) =>
    client.on("error", (error) => log.debug({ error: error.message }, "in use")),
  );
  pool.on("error", (error) => log.warn({ error: error.message }, "a connection to PostgreSQL was lost"));
  return pool;
}

/** Named: each connection parses and plans it once. */
const appendStatement = {
  name: "ambit: append",
  text: `WITH held AS (
      UPDATE ambit_runs SET events = $3, size = size + $6
      WHERE id = $1 AND fence = $2 AND state = 'running' AND events = $4 - 1 RETURNING id)
    INSERT INTO ambit_chunks (run_id, first_event, last_event, body)
    SELECT id, $4, $3, $5 FROM held`,
};

/** PostgreSQL behind the interface of a store's database. */
class PostgresDatabase implements Database {
  readonly now = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)";
  readonly lock = " FOR UPDATE";
  readonly insertsInWith = true;
  readonly append: Database["append"];
  /** What each transaction begins with. */
  readonly #begin: readonly Statement[];
  readonly #isPooled: boolean;

  constructor(
    readonly pool: pg.Pool,
    { schema, pooling }: Pick<PoolSettings, "schema" | "pooling">,
  ) {
    this.#isPooled = pooling === "transaction";
    this.#begin = this.#isPooled ? [begin, transactionSettings(schema)] : [begin];
    if (!this.#isPooled) this.append = (chunk) => this.#append(chunk);
  }

  async run(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    const [only] = statements;
    if (only !== undefined && statements.length === 1 && !this.#isPooled)
      return [await query(this.pool, only)];
    // Another connection of the server may get each transaction: none of them knows a statement by its name.
    const sent = this.#isPooled ? statements.map(({ text, values = [] }) => ({ text, values })) : statements;
    return this.#connected(async (client) => {
      const rows = await all(client, [...this.#begin, ...sent, commit]);
      return rows.slice(this.#begin.length, -1);
    });
  }

  /** Runs one transaction whose work waits for other things than its statements. */
  transaction<Result>(work: (client: pg.ClientBase) => Promise<Result>): Promise<Result> {
    return this.#connected(async (client) => {
      for (const statement of this.#begin) await query(client, statement);
      const result = await work(client);
      await query(client, commit);
      return result;
    });
  }

  /** A connection on which something failed isn't used again. */
  async #connected<Result>(work: (client: pg.ClientBase) => Promise<Result>): Promise<Result> {
    const client = await this.pool.connect();
    let failure: Error | undefined;
    try {
      return await work(client);
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error));
      throw failure;
    } finally {
      client.release(failure);
    }
  }

  async #append({ runId, fence, first, last, text }: ChunkToAppend): Promise<boolean> {
    try {
      const { rowCount } = await this.pool.query({
        ...appendStatement,
        values: [runId, fence, last, first, text, text.length],
      });
      return rowCount === 1;
    } catch (error) {
      throw namingFullDisk(error);
    }
  }

  async close(): Promise<void> {
    if (!this.pool.ended) await this.pool.end();
  }
}

const begin: Statement = { text: "BEGIN" };
/** Rolls back after a failed statement. */
const commit: Statement = { text: "COMMIT" };

/** Sends all of them before the first one's rows arrive. @throws the first failure, once all have ended */
async function all(client: pg.ClientBase, statements: readonly Statement[]): Promise<Row[][]> {
  const outcomes = await Promise.allSettled(statements.map((statement) => query(client, statement)));
  return outcomes.map((outcome) => {
    if (outcome.status === "rejected") throw outcome.reason;
    return outcome.value;
  });
}

async function query(
  client: pg.Pool | pg.ClientBase,
  { name, text, values = [] }: Statement,
): Promise<Row[]> {
  try {
    const { rows } = await client.query<Record<string, unknown>>({
      ...(name === undefined ? {} : { name: `ambit: ${name}` }),
      text,
      values: [...values],
    });
    return rows;
  } catch (error) {
    throw namingFullDisk(error);
  }
}

/** PostgreSQL's code for a full disk of the server. An exhausted quota has that of any failure (`XX000`). */
const fullCode = "53100";
const quotaWords = /disk quota exceeded/i;

function namingFullDisk(error: unknown): unknown {
  const isFull =
    codeOf(error) === fullCode || (codeOf(error) === "XX000" && quotaWords.test(messageOf(error)));
  return isFull ? new StoreFailed(diskFull, { cause: error }) : error;
}

const fix =
  'set "pooling": "transaction" in the settings of @ambit/store-postgres, which works behind every pooler of sessions or transactions, or connect to PostgreSQL itself';

/** Something on the way dropped the startup parameters: the tables would be created in another schema. */
const searchPathIgnored = (schema: string) =>
  `the connection doesn't have the search path "${schema}": a pooler on the way, such as PgBouncer, ignores startup parameters (ignore_startup_parameters): ${fix}`;

/** PgBouncer's words for a startup parameter that it doesn't pass on, and for a mode without transactions. */
const unsupported = /unsupported startup parameter|statement pooling mode/i;

/** The error, with what to do where a pooler refused the connection. */
function withPoolerNamed(error: unknown): unknown {
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
async function refusePooler(settings: PoolSettings): Promise<void> {
  if (settings.pooling === "transaction") return;
  const [client, rival] = [new pg.Client(clientSettings(settings)), new pg.Client(clientSettings(settings))];
  // One that was refused ends its connection itself.
  for (const each of [client, rival]) each.on("error", () => {});
  try {
    await Promise.all([client.connect(), rival.connect()]);
    const first = await processOf(client);
    await rival.query("BEGIN");
    const second = await processOf(rival);
    const third = await processOf(client);
    await rival.query("ROLLBACK");
    if (first === second || first !== third)
      throw new Error(`a pooler of transactions is on the way, such as PgBouncer: ${fix}`);
  } finally {
    await Promise.all([client.end(), rival.end()]);
  }
}

async function processOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return rows[0]?.pid;
}
