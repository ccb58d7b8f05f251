import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Database, Row, Statement } from "./database.js";
import { migrationsFrom, schemaVersion } from "./migrations.js";

/** Number of cached prepared statements. */
const maxPrepared = 200;

/** What SQLite's SQL has of its own. */
export const sqliteDialect: Pick<Database, "now" | "lock" | "insertsInWith"> = {
  now: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
  lock: "",
  insertsInWith: false,
};

/** An open SQLite database. Every call blocks its thread. */
export class SqliteConnection {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  /**
   * @param location a file, or `:memory:`.
   * @param busyMs milliseconds that a statement waits for another process's transaction.
   */
  constructor(location: string, busyMs = 0) {
    const { DatabaseSync } = loadSqlite();
    this.#database = new DatabaseSync(location, { timeout: busyMs });
  }

  /** Runs all statements in one transaction. @returns the rows of each */
  run(statements: readonly Statement[]): Row[][] {
    const [only] = statements;
    if (only !== undefined && statements.length === 1) return [this.#all(only)];
    return this.#transaction(() => statements.map((statement) => this.#all(statement)));
  }

  /** Statements without values, such as pragmas. */
  execute(text: string): void {
    this.#database.exec(text);
  }

  /** Brings the schema up to date. @throws Error for a newer one; the database is closed then */
  migrate(): void {
    // Nothing is written where nothing is to do: a full disk has no room for it.
    if (this.#schemaVersion() === schemaVersion) return;
    try {
      this.#transaction(() => {
        for (const { text } of migrationsFrom(this.#schemaVersion())) this.#database.exec(text);
        this.#database.exec(`PRAGMA user_version = ${schemaVersion}`);
      });
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  close(): void {
    this.#prepared.clear();
    this.#database.close();
  }

  #schemaVersion(): number {
    return Number(this.#database.prepare("PRAGMA user_version").get()?.user_version ?? 0);
  }

  #transaction<Result>(act: () => Result): Result {
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

  #all({ text, values = [] }: Statement): Row[] {
    const named = Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]));
    return this.#statement(text).all(named);
  }

  #statement(text: string): StatementSync {
    const cached = this.#prepared.get(text);
    if (cached !== undefined) return cached;
    if (this.#prepared.size >= maxPrepared) this.#prepared.clear();
    const statement = this.#database.prepare(text);
    this.#prepared.set(text, statement);
    return statement;
  }
}

/** node:sqlite is stable enough on every supported Node; older ones would print a warning at each start. */
function loadSqlite(): typeof import("node:sqlite") {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return process.getBuiltinModule("node:sqlite");
  } finally {
    process.emitWarning = emitWarning;
  }
}
