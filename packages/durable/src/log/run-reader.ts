import type { Log } from "@ambit/core/plugin";
import { patiently } from "../outage.js";
import type { StoreSettings } from "../settings.js";
import type { Store, StoredRun } from "../store/index.js";
import { follow, type Records } from "./follow.js";
import type { Heads } from "./heads.js";
import type { LogTail } from "./log-tail.js";

export interface RunReaderOptions {
  readonly store: Store;
  readonly settings: StoreSettings;
  readonly log: Log;
}

/** Reads runs of all replicas, and waits for a store that can't be reached for a moment. */
export class RunReader {
  /** Rows that are being read, for readers that ask for them at the same time: a result may be large. */
  readonly #asked = new Map<string, Promise<StoredRun | undefined>>();

  /** @param tail of a run of this replica. */
  constructor(
    readonly options: RunReaderOptions,
    readonly heads: Heads,
    readonly tail: (id: string) => LogTail | undefined,
  ) {}

  /** @param signal of the caller who waits for it. @throws StoreFailed */
  get(id: string, signal?: AbortSignal): Promise<StoredRun | undefined> {
    const { settings, log, store } = this.options;
    return patiently("read a run", settings.retryTimeoutMs, log, () => store.get(id), signal);
  }

  /** The same without its result, which may be large. */
  async summary(id: string, signal?: AbortSignal): Promise<StoredRun | undefined> {
    const { settings, log, store } = this.options;
    const list = () => store.list({ id, limit: 1 });
    const [run] = await patiently("read a run", settings.retryTimeoutMs, log, list, signal);
    return run;
  }

  /** The run's records after this one, until its result. @throws NotFound, StoreFailed */
  follow(id: string, after: number, signal: AbortSignal): AsyncGenerator<Records, void, undefined> {
    const { store, settings, log } = this.options;
    const { heads, tail } = this;
    const shared = { get: (of: string) => this.#shared(of), read: store.read.bind(store) };
    const source = { store: shared, log, heads, tail, retryTimeoutMs: settings.retryTimeoutMs };
    return follow(source, id, after, signal);
  }

  #shared(id: string): Promise<StoredRun | undefined> {
    const asked = this.#asked.get(id) ?? this.options.store.get(id).finally(() => this.#asked.delete(id));
    this.#asked.set(id, asked);
    return asked;
  }
}
