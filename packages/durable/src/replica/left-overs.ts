import { messageOf, type StoreFailed } from "@ambit/core";
import type { HeldRun, Store } from "../store/index.js";
import { endLost, endUnstored, type LostRunEnder } from "./lost-result.js";

/** Ends runs that the store assigns to this replica, and that aren't here: their results couldn't be stored. */
export class LeftOvers {
  /** Runs that are being created: they may not be in the store's list of this replica's runs yet. */
  readonly #starting = new Set<string>();
  /** Runs that ended here while the store failed, until it has their ends. */
  readonly #unstored = new Map<string, StoreFailed>();

  /** @param isHere whether a run is being recorded here. */
  constructor(
    readonly options: LostRunEnder & { readonly store: Pick<Store, "get" | "finish"> },
    readonly isHere: (id: string) => boolean,
  ) {}

  /** Why a run's result isn't in the store. */
  failureOf(id: string): StoreFailed | undefined {
    return this.#unstored.get(id);
  }

  unstored(id: string, failure: StoreFailed): void {
    this.#unstored.set(id, failure);
  }

  /** A run isn't left over while this acts. */
  async whileStarting<Result>(id: string, act: () => Promise<Result>): Promise<Result> {
    this.#starting.add(id);
    try {
      return await act();
    } finally {
      this.#starting.delete(id);
    }
  }

  /** @param held every run of this replica, as the store has it. */
  end(held: readonly HeldRun[]): void {
    for (const { id, fence } of held) if (!this.#isActive(id)) void this.#end(id, fence);
    const ids = new Set(held.map(({ id }) => id));
    for (const id of this.#unstored.keys()) if (!ids.has(id)) this.#unstored.delete(id);
  }

  #isActive(id: string): boolean {
    return this.isHere(id) || this.#starting.has(id);
  }

  async #end(id: string, fence: number): Promise<void> {
    const { store, log } = this.options;
    try {
      const run = await store.get(id);
      if (run?.state !== "running" || this.#isActive(id)) return;
      const failure = this.#unstored.get(id);
      if (failure === undefined) await endLost(this.options, run, fence);
      else await endUnstored(this.options, run, fence, failure);
      this.#unstored.delete(id);
    } catch (error) {
      log.warn({ error: messageOf(error) }, "a run that was lost could not be ended");
    }
  }
}
