import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { definePlugin, type StoreBackend, StoreFailed } from "@ambit/core/plugin";
import type { Store } from "@ambit/durable/store";
import { type Database, diskFull, type Row, type Statement, sqlStore } from "@ambit/sql-store";
import { migrationsFrom, schemaVersion } from "@ambit/sql-store/schema";
import { z } from "zod";

export const configSchema = z.strictObject({
  /** The database's file, which is created. */
  file: z.string().min(1).default("runs.sqlite"),
});

/** SQLite's code for a full disk. */
const sqliteFull = 13;

/**
 * The statements are `sqlStore`'s; a database only has to run them. Here in SQLite in this thread, where each one blocks all
 * runs: `@ambit/store-sqlite` has a thread of its own, and keeps room on the disk for the ends of runs.
 */
class SqliteDatabase implements Database {
  readonly now = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
  readonly lock = ""; // One writer at a time: nothing has to be locked.
  readonly insertsInWith = false;
  readonly #database: DatabaseSync;

  /** @throws Error for a file that can't be used, or has a newer schema. */
  constructor(file: string) {
    this.#database = new DatabaseSync(file, { timeout: 10_000 });
    this.#database.exec("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;");
    this.#inTransaction(() => {
      const version = Number(this.#database.prepare("PRAGMA user_version").get()?.user_version ?? 0);
      for (const { text } of migrationsFrom(version)) this.#database.exec(text);
      this.#database.exec(`PRAGMA user_version = ${schemaVersion}`);
    });
  }

  async run(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    try {
      return this.#inTransaction(() => statements.map((statement) => this.#rowsOf(statement)));
    } catch (cause) {
      const isFull = cause instanceof Error && "errcode" in cause && cause.errcode === sqliteFull;
      throw isFull ? new StoreFailed(diskFull, { cause }) : cause;
    }
  }

  async scrub(): Promise<boolean> {
    // Moves the log, which still has what was deleted, into the file.
    return this.#database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy === 0;
  }

  async close(): Promise<void> {
    if (this.#database.isOpen) this.#database.close();
  }

  #rowsOf({ text, values = [] }: Statement): Row[] {
    const named = values.map((value, index): [string, SQLInputValue] => [`$${index + 1}`, value]);
    return this.#database.prepare(text).all(Object.fromEntries(named));
  }

  #inTransaction<Result>(act: () => Result): Result {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      const result = act();
      this.#database.exec("COMMIT");
      return result;
    } catch (error) {
      // A full disk has already ended the transaction.
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }
}

export const makeStore = ({ file }: z.output<typeof configSchema>): StoreBackend<Store> => ({
  name: "sample",
  open: async () => sqlStore(new SqliteDatabase(file)),
});

export default definePlugin({
  name: "ambit-sample",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("store", makeStore(config)),
});
