import type { Store } from "@ambit/durable/store";
import { sqlStore } from "./sql-store.js";
import { SqliteConnection, sqliteDialect } from "./sqlite.js";

/**
 * Opens a store in the memory of this process. No file is written, and what is stored ends with the process. Statements run
 * in the caller's thread: without a disk each takes less than a message to another thread would.
 */
export function openMemoryStore(): Store {
  const connection = new SqliteConnection(":memory:");
  connection.execute("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY");
  connection.migrate();
  return sqlStore({
    ...sqliteDialect,
    run: async (statements) => connection.run(statements),
    close: async () => connection.close(),
  });
}
