import { NotFound } from "@ambit/core";
import { idOfRun } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import { retryWhileDown } from "../outage.js";
import type { StoreSettings } from "../settings.js";
import type { EventGroup, NewRun, RunEnd, Store, StoredRun, Written } from "../store/index.js";
import type { RecordGroup, Records, RunLog } from "./follow.js";
import { follow, type LogEnd, pageCharacters, type RecordSource } from "./follow.js";
import { Pace, type PacedReader, RecentRecords } from "./recent-records.js";
import type { RemoteProgress } from "./remote-progress.js";

const mebibyte = 1_048_576;
/** Characters of the latest events of a run here that its readers needn't ask the store for. */
const maxRecentCharacters = mebibyte;

export interface StoredLogsOptions {
  readonly store: Pick<Store, "append" | "finish" | "get" | "read">;
  readonly settings: Pick<StoreSettings, "retryTimeoutMs" | "runMiB">;
  /**
   * Whether a log keeps only the latest `runMiB` of its run, and paces the run by its first reader. Default: it keeps all, and
   * a run that writes more than `runMiB` ends.
   */
  readonly keepsLatest?: boolean;
  readonly log: Log;
}

/** A log that is written here. */
interface OpenLog {
  readonly recent: RecentRecords;
  readonly pace: Pace | undefined;
}

/** Logs in a store, of runs on all replicas. Waits for a store that can't be reached for a moment. */
export class StoredLogs {
  readonly #open = new Map<string, OpenLog>();
  /** Rows that are being read, for readers that ask for them at the same time: a result may be large. */
  readonly #reading = new Map<string, Promise<StoredRun | undefined>>();

  /** @param remoteProgress progress of runs on other replicas. */
  constructor(
    readonly options: StoredLogsOptions,
    readonly remoteProgress: Pick<RemoteProgress, "beyond">,
  ) {}

  /** The log of a run that begins here. @param announced of its events, those that it has already. */
  open(id: string, fence: number, announced: NewRun["announced"]): RunLog {
    const { keepsLatest, settings } = this.options;
    const recent = new RecentRecords(keepsLatest ? settings.runMiB * mebibyte : maxRecentCharacters);
    if (announced !== undefined) recent.add({ first: 1, ...announced });
    const open = { recent, pace: keepsLatest ? new Pace(recent) : undefined };
    this.#open.set(id, open);
    const close = () => {
      if (this.#open.get(id) === open) this.#open.delete(id);
      recent.wake();
    };
    return new StoredLog(this, id, fence, open, close);
  }

  /** As the log's own `follow`, of a run anywhere. */
  async *follow(id: string, after: number, signal: AbortSignal): AsyncGenerator<Records, void, undefined> {
    const reading: { reader?: PacedReader | undefined } = {};
    try {
      yield* follow(this.#source(id, signal, reading), after, signal);
    } finally {
      reading.reader?.leave();
    }
  }

  /** The number of the first event of a run that can still be read. */
  async firstOf(id: string, signal?: AbortSignal): Promise<number> {
    const { keepsLatest, store } = this.options;
    if (keepsLatest !== true) return 1;
    const { recent } = this.#open.get(id) ?? {};
    if (recent !== undefined) return recent.first;
    const [oldest] = await this.retryWhileDown("read events", () => store.read(id, 0, 1), signal);
    return oldest?.first ?? 1;
  }

  /** Resolves when the run may have ended, or the reader left. */
  async ended(id: string, signal: AbortSignal): Promise<void> {
    const open = this.#open.get(id);
    if (open === undefined) return this.remoteProgress.beyond(id, Number.POSITIVE_INFINITY, signal);
    while (open.recent.end === undefined && this.#open.get(id) === open && !signal.aborted)
      await open.recent.changed(signal);
  }

  /** @param signal of the one who waits. @throws StoreFailed */
  retryWhileDown<Result>(what: string, act: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const { settings, log } = this.options;
    return retryWhileDown(what, settings.retryTimeoutMs, log, act, signal);
  }

  #source(id: string, signal: AbortSignal, reading: { reader?: PacedReader | undefined }): RecordSource {
    const recent = () => this.#open.get(id)?.recent;
    return {
      read: (after) => {
        // One that follows a queued run joins it when it begins.
        reading.reader ??= this.#open.get(id)?.pace?.join(after);
        reading.reader?.hasTaken(after);
        return recent()?.after(after, pageCharacters) ?? this.#read(id, after, signal);
      },
      end: (last) => recent()?.end ?? (recent() === undefined ? this.#endOf(id, last, signal) : undefined),
      more: (last) => recent()?.changed(signal) ?? this.remoteProgress.beyond(id, last, signal),
    };
  }

  /** @throws NotFound where the next record was dropped */
  async #read(id: string, after: number, signal: AbortSignal): Promise<readonly Records[]> {
    const { store } = this.options;
    const page = await this.retryWhileDown(
      "read events",
      () => store.read(id, after, pageCharacters),
      signal,
    );
    const [oldest] = page;
    if (oldest !== undefined) requireKept(id, oldest.first, after);
    return page;
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
    const reading =
      this.#reading.get(id) ?? this.options.store.get(id).finally(() => this.#reading.delete(id));
    this.#reading.set(id, reading);
    return reading;
  }
}

/** @throws NotFound where the record after this one was dropped. @param first the first one that is kept */
export function requireKept(id: string, first: number, after: number): void {
  if (after + 1 >= first) return;
  const fix = `continue with after=${first - 1}, or load a store, which keeps all of them`;
  throw new NotFound(
    `The events of run '${idOfRun(id)}' before number ${first} are no longer in memory: ${fix}.`,
  );
}

/** Its readers get only what was committed. */
class StoredLog implements RunLog {
  /** Characters that the store has dropped. */
  #droppedCharacters = 0;

  constructor(
    readonly logs: StoredLogs,
    readonly id: string,
    readonly fence: number,
    readonly open: OpenLog,
    readonly close: () => void,
  ) {}

  async append(group: RecordGroup, signal: AbortSignal): Promise<Written | "full"> {
    const { logs, id, fence } = this;
    const { recent, pace } = this.open;
    const { store, settings } = logs.options;
    const first = recent.last + 1;
    const append = () => store.append({ runId: id, fence, first, ...group, ...this.#dropped() });
    const written = await logs.retryWhileDown("keep events", append, signal);
    if (written === "fenced") return written;
    this.#droppedCharacters = recent.dropped;
    recent.add({ first, count: group.count, text: group.text });
    if (pace === undefined) return recent.written > settings.runMiB * mebibyte ? "full" : written;
    await pace.room(signal);
    return written;
  }

  async end(end: RunEnd, signal: AbortSignal): Promise<Written> {
    const { logs, id, fence } = this;
    const finish = () => logs.options.store.finish(id, fence, end);
    const written = await logs.retryWhileDown("keep a result", finish, signal);
    if (written === "written") this.open.recent.finish(end.result);
    return written;
  }

  runEnded(): void {
    this.open.pace?.runEnded();
  }

  follow(after: number, signal: AbortSignal): AsyncGenerator<Records, void, undefined> {
    return this.logs.follow(this.id, after, signal);
  }

  /** Of a log that keeps the latest records only: those that its readers can't have any more. */
  #dropped(): Pick<EventGroup, "dropped"> {
    const { recent, pace } = this.open;
    const characters = recent.dropped - this.#droppedCharacters;
    if (pace === undefined || characters === 0) return {};
    return { dropped: { before: recent.first, characters } };
  }
}
