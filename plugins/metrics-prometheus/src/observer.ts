import type { RunnerState } from "@ambit/core/plugin";
import { FigureObserver, measure } from "@ambit/metrics";
import type { Metrics } from "./metrics.js";

/** Serves the figures of runs. */
export class PrometheusObserver extends FigureObserver {
  readonly name = "prometheus";
  #metrics: Promise<Metrics> | undefined;

  constructor(readonly buckets: readonly number[]) {
    super();
  }

  async scrape(state: RunnerState): Promise<string> {
    const metrics = await this.opened();
    return await metrics.text(measure(state));
  }

  protected opened(): Promise<Metrics> {
    this.#metrics ??= import("./metrics.js").then(({ Metrics }) => new Metrics(this.buckets));
    return this.#metrics;
  }
}
