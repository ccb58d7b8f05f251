import type { Log } from "@ambit/core/plugin";
import type { Store } from "@ambit/durable/store";
import { createRun, sqlStore } from "@ambit/sql-store";
import { migrate } from "./migrate.js";
import { all, newPool, type PoolSettings, PostgresDatabase } from "./pool.js";
import { RunQueue } from "./queue.js";

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
  const store = sqlStore(database);
  const queue = new RunQueue(pool, settings.schema, log);
  return {
    ...store,
    create: async (run) => {
      if (run.state === "running") return store.create(run);
      await queue.ready();
      const created = await database.transaction(async (client) => {
        const [rows] = await all(client, [createRun(database, run)]);
        if (rows?.length !== 1) return false;
        await queue.add(run.id, run.project, client);
        return true;
      });
      return created ? undefined : store.get(run.id);
    },
    nextQueued: (limit, except) => queue.take(limit, except),
    claim: async (id, replica) => {
      const claim = await store.claim(id, replica);
      await queue.done(id);
      return claim;
    },
    close: async () => {
      await queue.close();
      await store.close();
    },
  };
}
