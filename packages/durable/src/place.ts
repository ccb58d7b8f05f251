import { RemoteProgress } from "./log/remote-progress.js";
import type { RunLogs } from "./log/run-log.js";
import { StoredLogs, type StoredLogsOptions } from "./log/stored-log.js";
import { MemoryStore, type MemoryStoreOptions } from "./memory/memory-store.js";
import type { Store } from "./store/index.js";

/** Where runs are: their rows, and their logs. */
export interface Place {
  readonly store: Store;
  readonly logs: RunLogs;
  /** Whether another process may take a run over. */
  readonly isShared: boolean;
}

/** In a store, which other replicas may share. */
export function storedPlace(options: StoredLogsOptions & { readonly store: Store }): Place {
  const { store, log } = options;
  return { store, logs: new StoredLogs(options, new RemoteProgress(store, log)), isShared: true };
}

/** In the memory of this process. Runs end with it. */
export function memoryPlace(options: MemoryStoreOptions): Place {
  const { store, logs } = new MemoryStore(options);
  return { store, logs, isShared: false };
}
