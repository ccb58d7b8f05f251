import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { constants as osConstants } from "node:os";
import { dirname } from "node:path";

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
