import type { RunnerState } from "@ambit/core/plugin";
import { unlessAborted } from "@ambit/core/plugin";
import {
  counters,
  durationBuckets,
  gauges,
  histograms,
  type Measurement,
  type Metric,
  type MetricChange,
  measure,
} from "@ambit/metrics";
import type { Counter, Histogram, Meter, ObservableGauge } from "@opentelemetry/api";
import { OTLPMetricExporterBase } from "@opentelemetry/exporter-metrics-otlp-http";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { signals } from "../environment.js";
import { type Losses, lossReasons } from "./losses.js";
import type { Sdk } from "./sdk.js";
import { metricSignal } from "./signal.js";

/** Exports at once: the last one may follow one under way. */
const maxExports = 2;

/**
 * The metrics of `@ambit/metrics` over OTLP. What an outage loses are values of the past: the next export has the totals.
 */
export class MetricExport {
  readonly #provider: MeterProvider;
  readonly #losses: Losses;
  readonly #counters: ReadonlyMap<string, Counter>;
  readonly #histograms: ReadonlyMap<string, Histogram>;
  readonly #gauges: ReadonlyMap<string, ObservableGauge>;
  readonly #meter: Meter;

  constructor(readonly sdk: Sdk) {
    const { environment } = sdk.telemetry;
    this.#losses = sdk.losses("metrics", environment.exported.metrics?.origin ?? "");
    const exporter = new OTLPMetricExporterBase(sdk.toEnvironment(metricSignal, maxExports, this.#losses));
    const { intervalMs, timeoutMs } = environment.metrics;
    const reader = new PeriodicExportingMetricReader({
      exporter,
      exportIntervalMillis: intervalMs,
      exportTimeoutMillis: timeoutMs,
    });
    const { resource, scope } = sdk;
    this.#provider = new MeterProvider({ resource, readers: [reader] });
    const meter = this.#provider.getMeter(scope.name, scope.version, { schemaUrl: scope.schemaUrl });
    const options = ({ description, unit }: Metric) => ({
      description,
      unit,
    });
    const advice = { explicitBucketBoundaries: [...durationBuckets] };
    this.#counters = each(counters, (metric) => meter.createCounter(metric.name, options(metric)));
    this.#histograms = each(histograms, (metric) =>
      meter.createHistogram(metric.name, { ...options(metric), advice }),
    );
    this.#gauges = each(gauges, (metric) => meter.createObservableGauge(metric.name, options(metric)));
    this.#meter = meter;
    this.#observeExports();
  }

  record(recording: MetricChange): void {
    const labels = { ...recording.labels };
    if ("counter" in recording) this.#counters.get(recording.counter)?.add(recording.by, labels);
    else this.#histograms.get(recording.histogram)?.record(recording.seconds, labels);
  }

  /** From now on each export has the values of the gauges. */
  watch(state: () => Promise<RunnerState>): void {
    this.#meter.addBatchObservableCallback(
      async (result) => {
        for (const { gauge, value, labels } of await measured(state)) {
          const instrument = this.#gauges.get(gauge);
          if (instrument !== undefined) result.observe(instrument, value, { ...labels });
        }
      },
      [...this.#gauges.values()],
    );
  }

  /** Sends the last figures, until `signal` aborts. Never rejects. */
  async close(signal: AbortSignal): Promise<void> {
    await unlessAborted(signal, () => this.#provider.shutdown()).catch(() => undefined);
    this.#losses.close();
  }

  /** What was exported and lost, of all signals. */
  #observeExports(): void {
    const { counts } = this.sdk.telemetry;
    const exported = this.#meter.createObservableCounter("ambit.telemetry.exported", {
      description: "Spans, data points and log records that a collector accepted.",
    });
    const lost = this.#meter.createObservableCounter("ambit.telemetry.lost", {
      description: "Spans, data points and log records that no collector accepted, by reason.",
    });
    this.#meter.addBatchObservableCallback(
      (result) => {
        for (const signal of signals) {
          result.observe(exported, counts.exported(signal), { signal });
          for (const reason of lossReasons)
            result.observe(lost, counts.lost(signal, reason), { signal, reason });
        }
      },
      [exported, lost],
    );
  }
}

/** None while the state isn't available. */
async function measured(state: () => Promise<RunnerState>): Promise<readonly Measurement[]> {
  try {
    return measure(await state());
  } catch {
    return [];
  }
}

function each<Made>(
  metrics: Readonly<Record<string, Metric>>,
  make: (metric: Metric) => Made,
): ReadonlyMap<string, Made> {
  return new Map(Object.entries(metrics).map(([key, metric]) => [key, make(metric)]));
}
