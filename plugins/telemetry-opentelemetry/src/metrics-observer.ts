import type { RunnerState } from "@ambit/core/plugin";
import { FigureObserver } from "@ambit/metrics";
import type { MetricExport } from "./export/metric-export.js";
import type { Telemetry } from "./telemetry.js";

/** Exports the figures that metrics-prometheus serves. */
export class OpenTelemetryMetrics extends FigureObserver {
  readonly name = "opentelemetry-metrics";
  #export: Promise<MetricExport> | undefined;

  constructor(readonly telemetry: Telemetry) {
    super();
  }

  watch(state: () => Promise<RunnerState>): void {
    void this.opened().then((metrics) => metrics.watch(state));
  }

  async close(signal: AbortSignal): Promise<void> {
    await (await this.#export)?.close(signal);
  }

  protected opened(): Promise<MetricExport> {
    this.#export ??= Promise.all([this.telemetry.sdk(), import("./export/metric-export.js")]).then(
      ([sdk, { MetricExport }]) => new MetricExport(sdk),
    );
    return this.#export;
  }
}
