import { Worker } from "node:worker_threads";
import { StoreFailed } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";
import type { Store } from "@ambit/durable/store";
import {
  type Database,
  diskFull,
  type Essential,
  type Row,
  type Statement,
  sqlStore,
} from "@ambit/sql-store";
import { sqliteDialect } from "@ambit/sql-store/sqlite";

/** The worker's start parameters. */
export interface WorkerSettings {
  readonly file: string;
  readonly durability: "process" | "power";
}

export interface WorkerRequest {
  readonly id: number;
  readonly statements: readonly Statement[];
  readonly essential?: Essential | undefined;
}

/** The first one, with the id 0, reports that the database is open, or why it isn't. */
export type Reply =
  | { readonly id: number; readonly rows: readonly (readonly Row[])[] }
  | { readonly id: number; readonly error: string; readonly isFull: boolean };

interface Waiting {
  resolve(rows: readonly (readonly Row[])[]): void;
  reject(error: Error): void;
}

/** Opens the file in its own thread: no statement blocks the event loop. */
export async function openSqlite(
  file: string,
  durability: WorkerSettings["durability"],
  log: Log,
): Promise<Store> {
  const thread = new DatabaseThread({ file, durability }, log);
  await thread.opened();
  return sqlStore(thread);
}

/** The worker with the database, and the pending requests to it. A worker that ends by itself is restarted. */
class DatabaseThread implements Database {
  readonly now = sqliteDialect.now;
  readonly lock = sqliteDialect.lock;
  readonly insertsInWith = sqliteDialect.insertsInWith;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #opening: Promise<unknown> | undefined;
  #requests = 0;
  #closed = false;

  constructor(
    readonly settings: WorkerSettings,
    readonly log: Log,
  ) {}

  /** @throws Error when the file can't be used. */
  async opened(): Promise<Worker> {
    this.#worker ??= this.#start();
    await this.#opening;
    return this.#worker;
  }

  async run(statements: readonly Statement[], essential?: Essential): Promise<readonly (readonly Row[])[]> {
    if (this.#closed) throw new Error("the store is closed");
    const worker =
      this.#opening === undefined && this.#worker !== undefined ? this.#worker : await this.opened();
    this.#requests += 1;
    const id = this.#requests;
    const replied = this.#reply(id);
    worker.postMessage({ id, statements, essential } satisfies WorkerRequest);
    return replied;
  }

  /** Moves its log into the file, where deleted rows are overwritten, and empties it. */
  async scrub(): Promise<boolean> {
    const [[row] = []] = await this.run([{ text: "PRAGMA wal_checkpoint(TRUNCATE)" }], "delete");
    return row?.busy === 0;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { workerData: this.settings });
    worker.unref();
    this.#opening = this.#reply(0).finally(() => {
      this.#opening = undefined;
    });
    worker.on("message", (reply: Reply) => {
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if ("rows" in reply) waiting?.resolve(reply.rows);
      else {
        const cause = new Error(`SQLite: ${reply.error}`);
        waiting?.reject(reply.isFull ? new StoreFailed(diskFull, { cause }) : cause);
      }
    });
    const ended = (error?: Error) => {
      if (this.#worker === worker) this.#worker = undefined;
      if (!this.#closed) this.log.error({ error }, "the thread of the SQLite store ended");
      for (const { reject } of this.#waiting.values())
        reject(new Error("the thread of the SQLite store ended"));
      this.#waiting.clear();
    };
    worker.once("error", ended);
    worker.once("exit", () => this.#worker === worker && ended());
    return worker;
  }

  #reply(id: number): Promise<readonly (readonly Row[])[]> {
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }
}
