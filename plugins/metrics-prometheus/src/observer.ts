import type {
  LostRun,
  ObservedRefusal,
  ObservedRun,
  RunnerState,
  RunObservation,
  RunObserver,
  WebhookAttempt,
} from "@ambit/core/plugin";
import { Figures, measure } from "@ambit/metrics";
import type { Metrics } from "./metrics.js";

/** Counts what happens in runs. */
export class PrometheusObserver implements RunObserver {
  readonly name = "prometheus";
  readonly #figures = new Figures((recording) => {
    void this.#opened().then((metrics) => metrics.record(recording));
  });
  #metrics: Promise<Metrics> | undefined;

  constructor(readonly buckets: readonly number[]) {}

  observe(run: ObservedRun): RunObservation {
    return this.#figures.observe(run);
  }

  refused(refusal: ObservedRefusal): void {
    this.#figures.refused(refusal);
  }

  lost(run: LostRun): void {
    this.#figures.lost(run);
  }

  posted(attempt: WebhookAttempt): void {
    this.#figures.posted(attempt);
  }

  async scrape(state: RunnerState): Promise<string> {
    const metrics = await this.#opened();
    return await metrics.text(measure(state));
  }

  /** prom-client is loaded with the first run or scrape, not with the server. */
  #opened(): Promise<Metrics> {
    this.#metrics ??= import("./metrics.js").then(({ Metrics }) => new Metrics(this.buckets));
    return this.#metrics;
  }
}
