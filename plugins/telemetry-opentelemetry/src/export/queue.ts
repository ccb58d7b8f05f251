import type { ExportProgress } from "./delegate.js";
import type { Losses } from "./losses.js";

/** A batch processor of the SDK. */
export interface Batching<Item> {
  readonly add: (item: Item) => void;
  readonly shutdown: () => Promise<void>;
}

/**
 * The spans or log records that wait for one destination. The SDK's own queue drops without telling, so its length is
 * counted here.
 */
export class CountedQueue<Item> {
  readonly #batching: Batching<Item>;
  #waiting = 0;
  #unsettled = 0;

  constructor(
    readonly maxSize: number,
    readonly losses: Losses,
    batching: (progress: ExportProgress) => Batching<Item>,
  ) {
    this.#batching = batching({
      taken: (count) => {
        this.#waiting -= count;
      },
      settled: (count) => {
        this.#unsettled -= count;
      },
    });
  }

  /** @param share of the queue that items of this kind may fill: the rest is kept for others. */
  add(item: Item, share = 1): void {
    if (this.#waiting >= this.maxSize * share) {
      this.losses.lost("queue_full", 1);
      return;
    }
    this.#waiting += 1;
    this.#unsettled += 1;
    this.#batching.add(item);
  }

  /** Sends what waits. Never rejects. */
  async close(): Promise<void> {
    await this.#batching.shutdown().catch(() => undefined);
    this.abandon();
  }

  /** What hasn't been sent by now is lost. */
  abandon(): void {
    this.losses.lost("shutdown", this.#unsettled);
    this.#unsettled = 0;
    this.losses.close();
  }
}

/** Sends what waits, until `signal` aborts; what is left then is counted as lost. Never rejects. */
export async function closeQueues(
  queues: readonly Pick<CountedQueue<never>, "close" | "abandon">[],
  signal: AbortSignal,
): Promise<void> {
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await Promise.race([Promise.all(queues.map((queue) => queue.close())), aborted]);
  for (const queue of queues) queue.abandon();
}
