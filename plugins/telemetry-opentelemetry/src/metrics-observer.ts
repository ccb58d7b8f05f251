import type {
  LostRun,
  ObservedRefusal,
  ObservedRun,
  RunnerState,
  RunObservation,
  RunObserver,
  WebhookAttempt,
} from "@ambit/core/plugin";
import { Figures } from "@ambit/metrics";
import type { MetricExport } from "./export/metric-export.js";
import type { Telemetry } from "./telemetry.js";

/** Exports the figures that metrics-prometheus serves. */
export class OpenTelemetryMetrics implements RunObserver {
  readonly name = "opentelemetry-metrics";
  readonly #figures = new Figures((recording) => {
    void this.#opened().then((metrics) => metrics.record(recording));
  });
  #export: Promise<MetricExport> | undefined;

  constructor(readonly telemetry: Telemetry) {}

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

  watch(state: () => Promise<RunnerState>): void {
    void this.#opened().then((metrics) => metrics.watch(state));
  }

  async close(signal: AbortSignal): Promise<void> {
    await (await this.#export)?.close(signal);
  }

  #opened(): Promise<MetricExport> {
    this.#export ??= Promise.all([this.telemetry.sdk(), import("./export/metric-export.js")]).then(
      ([sdk, { MetricExport }]) => new MetricExport(sdk),
    );
    return this.#export;
  }
}
