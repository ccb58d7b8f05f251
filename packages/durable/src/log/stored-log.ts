import { NotFound } from "@ambit/core";
import { idOfRun } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { retryWhileDown } from "../outage.js";
import type { StoreSettings } from "../settings.js";
import type { NewRun, RunEnd, Store, StoredRun, Written } from "../store/index.js";
import { follow, type LogEnd, pageCharacters, type RecordSource } from "./follow.js";
import { RecentRecords } from "./recent-records.js";
import type { RemoteProgress } from "./remote-progress.js";
import type { RecordGroup, Records, RunLog, RunLogs } from "./run-log.js";

/** Characters of the latest events of a run here that its readers needn't ask the store for. */
const maxRecentCharacters = 1_048_576;

export interface StoredLogsOptions {
  readonly store: Pick<Store, "append" | "finish" | "get" | "read">;
  readonly settings: Pick<StoreSettings, "retryTimeoutMs" | "runMiB">;
  readonly log: Log;
}

/** Logs in a store, of runs on all replicas. Waits for a store that can't be reached for a moment. */
export class StoredLogs implements RunLogs {
  /** Those that are written here. */
  readonly #open = new Map<string, RecentRecords>();
  /** Rows that are being read, for readers that ask for them at the same time: a result may be large. */
  readonly #asked = new Map<string, Promise<StoredRun | undefined>>();

  /** @param remoteProgress progress of runs on other replicas. */
  constructor(
    readonly options: StoredLogsOptions,
    readonly remoteProgress: Pick<RemoteProgress, "beyond">,
  ) {}

  open(id: string, fence: number, announced: NewRun["announced"]): RunLog {
    const recent = new RecentRecords(maxRecentCharacters);
    if (announced !== undefined) recent.add({ first: 1, ...announced });
    this.#open.set(id, recent);
    const close = () => {
      if (this.#open.get(id) === recent) this.#open.delete(id);
      recent.wake();
    };
    return new StoredLog(this, id, fence, recent, close);
  }

  follow(id: string, after: number, signal: AbortSignal): AsyncGenerator<Records, void, undefined> {
    return follow(this.#source(id, signal), after, signal);
  }

  firstOf(): number {
    return 1;
  }

  async ended(id: string, signal: AbortSignal): Promise<void> {
    const recent = this.#open.get(id);
    if (recent === undefined) return this.remoteProgress.beyond(id, Number.POSITIVE_INFINITY, signal);
    while (recent.end === undefined && this.#open.get(id) === recent && !signal.aborted)
      await recent.changed(signal);
  }

  /** @param signal of the one who waits. @throws StoreFailed */
  retryWhileDown<Result>(what: string, act: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const { settings, log } = this.options;
    return retryWhileDown(what, settings.retryTimeoutMs, log, act, signal);
  }

  #source(id: string, signal: AbortSignal): RecordSource {
    const { store } = this.options;
    const recent = () => this.#open.get(id);
    return {
      read: (after) =>
        recent()?.after(after, pageCharacters) ??
        this.retryWhileDown("read events", () => store.read(id, after, pageCharacters), signal),
      end: (last) => recent()?.end ?? (recent() === undefined ? this.#endOf(id, last, signal) : undefined),
      more: (last) => recent()?.changed(signal) ?? this.remoteProgress.beyond(id, last, signal),
    };
  }

  /** The result, after all events before it were read. */
  async #endOf(id: string, last: number, signal: AbortSignal): Promise<LogEnd | undefined> {
    const run = await this.retryWhileDown("read a run", () => this.#shared(id), signal);
    if (run === undefined)
      throw new NotFound(`There is no run '${idOfRun(id)}': it was deleted, or never started.`);
    const { events, result } = run;
    return events <= last && result !== undefined ? { events, result } : undefined;
  }

  #shared(id: string): Promise<StoredRun | undefined> {
    const asked = this.#asked.get(id) ?? this.options.store.get(id).finally(() => this.#asked.delete(id));
    this.#asked.set(id, asked);
    return asked;
  }
}

/** Its readers get only what was committed. Only the store slows its writer. */
class StoredLog implements RunLog {
  constructor(
    readonly logs: StoredLogs,
    readonly id: string,
    readonly fence: number,
    readonly recent: RecentRecords,
    readonly close: () => void,
  ) {}

  async append(group: RecordGroup, signal: AbortSignal): Promise<Written | "full"> {
    const { logs, id, fence, recent } = this;
    const { store, settings } = logs.options;
    const first = recent.last + 1;
    const append = () => store.append({ runId: id, fence, first, ...group });
    const written = await logs.retryWhileDown("keep events", append, signal);
    if (written === "fenced") return written;
    recent.add({ first, count: group.count, text: group.text });
    return recent.written > settings.runMiB * 1_048_576 ? "full" : written;
  }

  async end(end: RunEnd, signal: AbortSignal): Promise<Written> {
    const { logs, id, fence, recent } = this;
    const finish = () => logs.options.store.finish(id, fence, end);
    const written = await logs.retryWhileDown("keep a result", finish, signal);
    if (written === "written") recent.finish(end.result);
    return written;
  }

  runEnded(): void {}

  follow(after: number, signal: AbortSignal): AsyncGenerator<Records, void, undefined> {
    return this.logs.follow(this.id, after, signal);
  }
}
