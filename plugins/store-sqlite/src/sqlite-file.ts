import { chmodSync, closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { migrationsFrom, type Row, type Statement, schemaVersion } from "@ambit/sql-store";
import type { WorkerSettings } from "./messages.js";

/** Milliseconds that a statement waits for another process's transaction. */
const busyMs = 10_000;
/** Number of cached prepared statements. */
const maxPrepared = 200;
/** Pages of 4 KiB in its log before they are moved into the file, which waits for the disk. SQLite's own default is 1,000. */
const checkpointPages = 4_000;

/** One open SQLite file, in the worker's thread. Every call blocks. */
export class SqliteFile {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  /** @throws Error for a file that can't be used, or has a newer schema. */
  constructor({ file, durability }: WorkerSettings) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o711 });
    // Created before SQLite does, whose file would be world-readable. Its companion files get the same mode.
    closeSync(openSync(file, "a", 0o600));
    chmodSync(file, 0o600);
    this.#database = new DatabaseSync(file, { timeout: busyMs });
    this.#database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = ${durability === "power" ? "FULL" : "NORMAL"};
      PRAGMA foreign_keys = ON;
      PRAGMA secure_delete = ON;
      PRAGMA wal_autocheckpoint = ${checkpointPages};
      PRAGMA journal_size_limit = 67108864;
    `);
    this.#migrate();
  }

  /** Runs all in one transaction. */
  run(statements: readonly Statement[]): Row[][] {
    const [only] = statements;
    if (only !== undefined && statements.length === 1) return [this.#all(only)];
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      const rows = statements.map((one) => this.#all(one));
      this.#database.exec("COMMIT");
      return rows;
    } catch (error) {
      // A full disk has already ended the transaction.
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  #migrate(): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      const found = Number(this.#database.prepare("PRAGMA user_version").get()?.user_version ?? 0);
      for (const { text } of migrationsFrom(found)) this.#database.exec(text);
      this.#database.exec(`PRAGMA user_version = ${schemaVersion}`);
      this.#database.exec("COMMIT");
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      this.#database.close();
      throw error;
    }
  }

  #all({ text, values = [] }: Statement): Row[] {
    const named = Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]));
    return this.#statement(text).all(named);
  }

  #statement(text: string): StatementSync {
    const known = this.#prepared.get(text);
    if (known !== undefined) return known;
    if (this.#prepared.size >= maxPrepared) this.#prepared.clear();
    const fresh = this.#database.prepare(text);
    this.#prepared.set(text, fresh);
    return fresh;
  }
}
