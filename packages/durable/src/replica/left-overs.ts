import { messageOf, type StoreFailed } from "@ambit/core";
import type { HeldRun, Store } from "../store/index.js";
import { endLost, endUnstored, type LostRunEnder } from "./lost-result.js";

/** Ends runs that the store assigns to this replica, and that aren't here: their results couldn't be stored. */
export class LeftOvers {
  /** Runs that something here is creating, claiming or ending, and how many times. */
  readonly #handled = new Map<string, number>();
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

  /** A run isn't left over while this acts: it creates, claims or ends the run. */
  async whileHandled<Result>(id: string, act: () => Promise<Result>): Promise<Result> {
    const count = (by: number) => (this.#handled.get(id) ?? 0) + by;
    this.#handled.set(id, count(1));
    try {
      return await act();
    } finally {
      const left = count(-1);
      if (left === 0) this.#handled.delete(id);
      else this.#handled.set(id, left);
    }
  }

  /** @param held every run of this replica, as the store has it. */
  end(held: readonly HeldRun[]): void {
    // Each renewal lists a run again until its end is stored.
    for (const { id, fence } of held)
      if (!this.#isActive(id)) void this.whileHandled(id, () => this.#end(id, fence));
    const ids = new Set(held.map(({ id }) => id));
    for (const id of this.#unstored.keys()) if (!ids.has(id)) this.#unstored.delete(id);
  }

  #isActive(id: string): boolean {
    return this.isHere(id) || this.#handled.has(id);
  }

  async #end(id: string, fence: number): Promise<void> {
    const { store, log } = this.options;
    try {
      const run = await store.get(id);
      if (run?.state !== "running" || this.isHere(id)) return;
      const failure = this.#unstored.get(id);
      if (failure === undefined) await endLost(this.options, run, fence);
      else await endUnstored(this.options, run, fence, failure);
      this.#unstored.delete(id);
    } catch (error) {
      log.warn({ error: messageOf(error) }, "a run that was lost could not be ended");
    }
  }
}
