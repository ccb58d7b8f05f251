import { setTimeout as sleep } from "node:timers/promises";
import { SnapshotFailed } from "@ambit/core";
import type { Blobs } from "../blobs/blobs.js";
import { idIn } from "./stored.js";

/** A snapshot that was begun so long ago and isn't done is its replica's, which has ended. */
const abandonedMs = 3_600_000;
/** How often a place is asked for while other replicas ask for it at the same moment. */
const maxAttempts = 6;
const maxPauseMs = 200;

interface Asked {
  readonly blobs: Blobs;
  readonly owner: string;
  readonly id: string;
}

/**
 * Places of each project's snapshots, counted over all replicas: a snapshot's first file, which its replica writes before it takes the
 * snapshot, has one.
 */
export class SnapshotPlaces {
  readonly #maxPerProject: number;
  readonly #abandonedMs: number;
  /** Of each owner: those that this process writes now, whose first file may not be listed yet. */
  readonly #unfinished = new Map<string, Set<string>>();

  constructor({ maxPerProject, timeoutMs }: { readonly maxPerProject: number; readonly timeoutMs: number }) {
    this.#maxPerProject = maxPerProject;
    this.#abandonedMs = Math.max(abandonedMs, 2 * timeoutMs);
  }

  /**
   * Takes a place for a snapshot, until it is given back.
   * @param begin writes the snapshot's first file. @param withdraw removes it. @throws SnapshotFailed, StoreFailed
   */
  async take(asked: Asked, begin: () => Promise<void>, withdraw: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const others = await this.#others(asked);
      if (this.#isFull(asked, others)) throw this.#full();
      this.#unfinished.set(asked.owner, new Set([...this.#own(asked), asked.id]));
      try {
        await begin();
        // A replica that wrote before this one's file was there is listed now; one that writes later finds that file.
        const seen = await this.#others(asked);
        if (!this.#isFull(asked, seen)) return;
      } catch (error) {
        this.giveBack(asked);
        throw error;
      }
      this.giveBack(asked);
      await withdraw();
      if (attempt === maxAttempts) throw this.#full();
      // Others may have withdrawn in the same moment.
      await sleep(Math.random() * maxPauseMs * attempt);
    }
  }

  /** It is there, or given up. */
  giveBack({ owner, id }: Pick<Asked, "owner" | "id">): void {
    const left = [...(this.#unfinished.get(owner) ?? [])].filter((one) => one !== id);
    if (left.length > 0) this.#unfinished.set(owner, new Set(left));
    else this.#unfinished.delete(owner);
  }

  #isFull(asked: Asked, listed: ReadonlySet<string>): boolean {
    const others = listed.union(this.#own(asked));
    others.delete(asked.id);
    return others.size >= this.#maxPerProject;
  }

  #own({ owner }: Asked): ReadonlySet<string> {
    return this.#unfinished.get(owner) ?? new Set();
  }

  async #others({ blobs, owner }: Asked): Promise<ReadonlySet<string>> {
    const since = Date.now() - this.#abandonedMs;
    const ids = new Set<string>();
    for await (const { name, at } of blobs.files(owner)) {
      const id = idIn(name, "manifest") ?? (at < since ? undefined : idIn(name, "state"));
      if (id !== undefined) ids.add(id);
    }
    return ids;
  }

  #full(): SnapshotFailed {
    return new SnapshotFailed(
      `The project has ${this.#maxPerProject} snapshots already: delete one (DELETE /snapshots/{snapshotId}), or raise workspace.maxSnapshotsPerProject of the server's configuration.`,
    );
  }
}
