import { definePlugin, type RunnerState } from "@ambit/core/plugin";
import { durationBuckets, FigureObserver, measure } from "@ambit/metrics";
import { z } from "zod";
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

export const configSchema = z.strictObject({
  /** Upper bounds in seconds of the buckets that durations are counted in. */
  buckets: z
    .array(z.number().positive())
    .min(1)
    .max(50)
    .default([...durationBuckets]),
});

export default definePlugin({
  name: "metrics-prometheus",
  api: 1,
  config: configSchema,
  register: (registrar, { buckets }) => registrar.add("observer", new PrometheusObserver(buckets)),
});
