import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { constants as osConstants } from "node:os";
import { dirname } from "node:path";
import type { Essential, Row, Statement } from "@ambit/sql-store";
// This entry is apart: the builder of statements isn't needed in this thread, and takes a while to load.
import { SqliteConnection } from "@ambit/sql-store/sqlite";
import type { WorkerSettings } from "./open-sqlite.js";

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

const blockBytes = 1_048_576;
/** Larger than SQLite's log when it is moved into the file, which grows by as much. */
const reserveBytes = 24 * blockBytes;
/** Free bytes beyond the reserve that other writes need. */
const minFreeBytes = 4 * blockBytes;
/** Bytes of the released reserve that only deletions may use. */
const deletionBytes = 8 * blockBytes;
/** By number: Node.js has no name for an exhausted quota. */
const exhausted: ReadonlySet<unknown> = new Set([-osConstants.errno.ENOSPC, -osConstants.errno.EDQUOT]);
/** As much as SQLite writes at once for a small transaction. */
const pieceBytes = 65_536;
/** Milliseconds after a failed attempt to take the room again. */
const retryMs = 1_000;

/**
 * A file that holds room on the disk. When the disk is full, it is removed, and only deletions, leases and the ends of
 * runs are written until there is room for it again. Processes that share the database share it.
 */
export class Reserve {
  readonly #file: string;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(database: string) {
    this.#file = `${database}-reserve`;
  }

  /** Whether it is there. Creates it if the disk has room for it. */
  isKept(): boolean {
    if ((statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0) >= reserveBytes) return true;
    if (this.#free() < reserveBytes + minFreeBytes) return false;
    if (performance.now() - this.#failedAt < retryMs) return false;
    try {
      this.#create();
      return true;
    } catch {
      // A quota, or another process was faster.
      this.#failedAt = performance.now();
      this.release();
      return false;
    }
  }

  release(): void {
    rmSync(this.#file, { force: true });
  }

  /** Whether the end of a run leaves enough for deletions. */
  hasRoomToEndRuns(): boolean {
    return this.#free() > deletionBytes;
  }

  /** Whether nothing more can be written here: the disk is full, or a quota, of which its free room says nothing. */
  isExhausted(): boolean {
    const look = `${this.#file}-look`;
    try {
      writeFileSync(look, randomBytes(pieceBytes), { mode: 0o600 });
      return false;
    } catch (error) {
      return error instanceof Error && "errno" in error && exhausted.has(error.errno);
    } finally {
      rmSync(look, { force: true });
    }
  }

  #free(): number {
    const { bavail, bsize } = statfsSync(dirname(this.#file));
    return bavail * bsize;
  }

  #create(): void {
    // A file system that compresses would keep no room for zeros.
    const block = randomBytes(blockBytes);
    // Another process may write the same at the same time.
    const file = openSync(this.#file, constants.O_WRONLY | constants.O_CREAT, 0o600);
    try {
      for (let place = 0; place < reserveBytes; ) place += writeSync(file, block, 0, blockBytes, place);
    } finally {
      closeSync(file);
    }
  }
}
