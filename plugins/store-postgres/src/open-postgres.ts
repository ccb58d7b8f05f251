import type { Log } from "@ambit/core/plugin";
import type { Store } from "@ambit/durable/store";
import { sqlStore } from "@ambit/sql-store";
import { migrate } from "./migrate.js";
import { newPool, type PoolSettings, PostgresDatabase } from "./pool.js";
import { refusePooler, withPoolerNamed } from "./pooler.js";

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
