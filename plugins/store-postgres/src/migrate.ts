import { migrationsFrom, schemaVersion } from "@ambit/sql-store/schema";
import type pg from "pg";
import { all, type PostgresDatabase } from "./pool.js";
import { searchPathIgnored } from "./pooler.js";

/** Names the lock among the advisory locks of this database: "ambit" in ASCII. */
const lockId = 0x61_6d_62_69_74;

/** Brings the schema up to date, once: other replicas wait for it. @throws Error for a newer one */
export async function migrate(database: PostgresDatabase, schema: string): Promise<void> {
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
    const found = rows[0]?.version ?? 0;
    await all(client, migrationsFrom(found));
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
