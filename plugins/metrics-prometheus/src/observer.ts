import type {
  LostRun,
  ObservedRefusal,
  ObservedRun,
  RunnerState,
  RunObservation,
  RunObserver,
} from "@ambit/core/plugin";
import type { Metrics } from "./metrics.js";
import { RunFigures } from "./run-figures.js";

/** Counts what happens in runs. */
export class MetricsObserver implements RunObserver {
  readonly name = "prometheus";
  #metrics: Promise<Metrics> | undefined;

  constructor(readonly buckets: readonly number[]) {}

  observe(run: ObservedRun): RunObservation {
    return new RunFigures(run, (step) => this.#count(step));
  }

  refused({ code, capabilities }: ObservedRefusal): void {
    this.#count(({ refused, missing }) => {
      refused.inc({ code });
      for (const capability of capabilities) missing.inc({ capability });
    });
  }

  lost({ harness, sandbox }: LostRun): void {
    this.#count(({ runs }) => runs.inc({ outcome: "runner_lost", harness, sandbox }));
  }

  async scrape({ runs, sessions, probes }: RunnerState): Promise<string> {
    const metrics = await this.#opened();
    metrics.active.set(runs);
    metrics.sessions.set(sessions);
    metrics.probeAge.reset();
    metrics.proven.reset();
    for (const { kind, actor, ageMs, findings } of probes) {
      metrics.probeAge.set({ kind, actor }, ageMs / 1_000);
      for (const { capability, proven } of findings)
        metrics.proven.set({ kind, actor, capability }, proven ? 1 : 0);
    }
    return await metrics.registry.metrics();
  }

  #count(step: (metrics: Metrics) => void): void {
    void this.#opened().then(step);
  }

  /** prom-client is loaded with the first run or scrape, not with the server. */
  #opened(): Promise<Metrics> {
    this.#metrics ??= import("./metrics.js").then(({ createMetrics }) => createMetrics(this.buckets));
    return this.#metrics;
  }
}
