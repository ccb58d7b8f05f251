import { chmodSync, closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import type { Essential, Row, Statement } from "@ambit/sql-store";
// Its own entry: the builder of statements isn't needed in this thread, and takes a while to load.
import { SqliteConnection } from "@ambit/sql-store/sqlite";
import type { WorkerSettings } from "./messages.js";
import { Reserve } from "./reserve.js";

/** Milliseconds that a statement waits for another process's transaction. */
const busyMs = 10_000;
/** Pages of 4 KiB in its log before they are moved into the file, which waits for the disk. SQLite's own default is 1,000. */
const checkpointPages = 4_000;
/** Free pages that are given back to a full disk after each deletion. */
const vacuumPages = 512;
/** SQLite's codes for a full disk: SQLITE_FULL, and SQLITE_IOERR_SHMSIZE for its log's index. */
const fullCodes: readonly unknown[] = [13, 4_874];
/** Those for a failed write of any other reason: SQLITE_IOERR_WRITE, _FSYNC and _TRUNCATE. A quota is one of them. */
const failedWrites: readonly unknown[] = [778, 1_034, 1_546];

/** The reserve has been released: only what is essential is written. */
class DiskFull extends Error {
  constructor(cause?: unknown) {
    super("database or disk is full", { cause });
  }
}

export function isFull(error: unknown): boolean {
  if (error instanceof DiskFull) return true;
  return error instanceof Error && "errcode" in error && fullCodes.includes(error.errcode);
}

/** One open SQLite file, in the worker's thread. Every call blocks. */
export class SqliteFile {
  readonly reserve: Reserve;
  readonly #connection: SqliteConnection;

  /** @throws Error for a file that can't be used, or has a newer schema. */
  constructor({ file, durability }: WorkerSettings) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o711 });
    // Created before SQLite does, whose file would be world-readable. Its companion files get the same mode.
    closeSync(openSync(file, "a", 0o600));
    chmodSync(file, 0o600);
    this.reserve = new Reserve(file);
    this.#connection = new SqliteConnection(file, busyMs);
    try {
      this.#prepare(durability);
    } catch (error) {
      if (!isFull(this.#named(error))) throw error;
      this.reserve.release();
      this.#prepare(durability);
    }
  }

  /**
   * Runs all in one transaction.
   * @param essential what is written also while the disk is full, with the room of the reserve.
   * @throws Error that `isFull`
   */
  run(statements: readonly Statement[], essential?: Essential): Row[][] {
    if (statements.every(({ text }) => text.startsWith("SELECT"))) return this.#transaction(statements);
    if (this.reserve.isKept()) {
      try {
        return this.#transaction(statements);
      } catch (error) {
        if (essential === undefined || !isFull(error)) throw error;
        this.reserve.release();
        this.#moveLog();
      }
    } else if (essential === undefined || (essential === "end" && !this.reserve.hasRoomToEndRuns()))
      throw new DiskFull();
    const rows = this.#transaction(statements);
    if (essential === "delete") this.#shrink();
    this.#moveLog();
    return rows;
  }

  #prepare(durability: WorkerSettings["durability"]): void {
    this.#connection.execute(`
      PRAGMA auto_vacuum = INCREMENTAL;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = ${durability === "power" ? "FULL" : "NORMAL"};
      PRAGMA foreign_keys = ON;
      PRAGMA secure_delete = ON;
      PRAGMA wal_autocheckpoint = ${checkpointPages};
      PRAGMA journal_size_limit = 67108864;
    `);
    this.#connection.migrate();
  }

  /** Moves the log into the file, and gives its room back. */
  #moveLog(): void {
    this.#unlessFull("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  /** Gives pages without content back to the disk. Without effect on a file of an earlier version. */
  #shrink(): void {
    this.#unlessFull(`PRAGMA incremental_vacuum(${vacuumPages})`);
  }

  #unlessFull(pragma: string): void {
    try {
      this.#connection.run([{ text: pragma }]);
    } catch (error) {
      if (!isFull(this.#named(error))) throw error;
    }
  }

  /** The error, or that the disk is full: SQLite doesn't say that a write failed for a quota. */
  #named(error: unknown): unknown {
    const isFailedWrite =
      error instanceof Error && "errcode" in error && failedWrites.includes(error.errcode);
    return isFailedWrite && this.reserve.isExhausted() ? new DiskFull(error) : error;
  }

  #transaction(statements: readonly Statement[]): Row[][] {
    try {
      return this.#connection.run(statements);
    } catch (error) {
      throw this.#named(error);
    }
  }
}
