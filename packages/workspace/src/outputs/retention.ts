import { messageOf } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";
import type { Blobs } from "../blobs.js";
import type { Snapshots } from "../snapshots/snapshots.js";
import { ownsSnapshots } from "../snapshots/stored.js";

/** Milliseconds between two clean-ups. */
const everyMs = 60_000;
/** Owners that are asked about at a time. */
const batch = 100;

interface RetentionOptions {
  readonly blobs: () => Promise<Blobs>;
  /**
   * Milliseconds that runs are kept at most. Younger files stay: another server, with another store, may share the place.
   */
  readonly maxAgeMs: number;
  /** Which of these runs still exist. Rejects while that can't be determined. */
  readonly existing: (owners: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Sessions' snapshots, which have an age of their own. */
  readonly snapshots: readonly Pick<Snapshots, "deleteOld">[];
  readonly log: Log;
}

/** Deletes the outputs of runs that don't exist any more. */
export class OutputsRetention {
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;

  constructor(readonly options: RetentionOptions) {}

  start(): void {
    this.#timer = setInterval(() => {
      this.#looking ??= this.look().finally(() => {
        this.#looking = undefined;
      });
    }, everyMs);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  /** Never rejects. */
  async look(): Promise<void> {
    const { log } = this.options;
    try {
      const blobs = await this.options.blobs();
      let owners: string[] = [];
      const before = Date.now() - this.options.maxAgeMs;
      for await (const { owner } of blobs.owners(before)) {
        if (ownsSnapshots(owner)) continue;
        owners.push(owner);
        if (owners.length < batch) continue;
        await this.#deleteLost(blobs, owners);
        owners = [];
      }
      await this.#deleteLost(blobs, owners);
      for (const snapshots of this.options.snapshots) await snapshots.deleteOld();
    } catch (error) {
      log.warn(
        { error: messageOf(error) },
        "files of deleted runs and old snapshots could not be cleaned up",
      );
    }
  }

  async #deleteLost(blobs: Blobs, owners: readonly string[]): Promise<void> {
    if (owners.length === 0) return;
    const existing = await this.options.existing(owners);
    for (const owner of owners) if (!existing.has(owner)) await blobs.delete(owner);
  }
}
