import type { Log } from "@ambit/core/plugin";
import type { Store } from "@ambit/durable/store";
import { sqlStore } from "@ambit/sql-store";
import { migrate } from "./migrate.js";
import { newPool, type PoolSettings, PostgresDatabase } from "./pool.js";

/** Connects, and brings the schema up to date. */
export async function openPostgres(settings: PoolSettings, log: Log): Promise<Store> {
  const pool = newPool(settings, log);
  const database = new PostgresDatabase(pool);
  try {
    await migrate(database, settings.schema);
  } catch (error) {
    await pool.end();
    throw error;
  }
  return sqlStore(database);
}
