import {
  counters,
  gauges,
  histograms,
  type Measurement,
  type Metric,
  type MetricChange,
} from "@ambit/metrics";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** The metrics of `@ambit/metrics`, and those of the process, in a registry of their own. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #counters: ReadonlyMap<string, Counter>;
  readonly #gauges: ReadonlyMap<string, Gauge>;
  readonly #histograms: ReadonlyMap<string, Histogram>;

  /** @param buckets of durations, in seconds. */
  constructor(buckets: readonly number[]) {
    const registers = [this.#registry];
    const given = (metric: Metric, kind: "counter" | "gauge" | "histogram") => ({
      name: prometheusName(metric, kind),
      help: metric.description,
      labelNames: [...metric.labels],
      registers,
    });
    const each = <Made>(metrics: Readonly<Record<string, Metric>>, make: (metric: Metric) => Made) =>
      new Map(Object.entries(metrics).map(([key, metric]) => [key, make(metric)]));
    this.#counters = each(counters, (metric) => new Counter(given(metric, "counter")));
    this.#gauges = each(gauges, (metric) => new Gauge(given(metric, "gauge")));
    this.#histograms = each(
      histograms,
      (metric) => new Histogram({ ...given(metric, "histogram"), buckets: [...buckets] }),
    );
    collectDefaultMetrics({ register: this.#registry });
  }

  record(recording: MetricChange): void {
    const labels = { ...recording.labels };
    if ("counter" in recording) this.#counters.get(recording.counter)?.inc(labels, recording.by);
    else this.#histograms.get(recording.histogram)?.observe(labels, recording.seconds);
  }

  /** The text, with these values of all gauges. */
  text(measured: readonly Measurement[]): Promise<string> {
    for (const gauge of this.#gauges.values()) {
      gauge.reset();
      // A reset sets a gauge without labels to 0.
      gauge.remove({});
    }
    for (const { gauge, labels, value } of measured) this.#gauges.get(gauge)?.set({ ...labels }, value);
    return this.#registry.metrics();
  }
}

/** OpenTelemetry's name as its specification translates it to Prometheus. Pure. */
export function prometheusName(
  { name, unit }: Pick<Metric, "name" | "unit">,
  kind: "counter" | "gauge" | "histogram",
): string {
  const seconds = unit === "s" ? "_seconds" : "";
  return `${name.replaceAll(".", "_")}${seconds}${kind === "counter" ? "_total" : ""}`;
}
