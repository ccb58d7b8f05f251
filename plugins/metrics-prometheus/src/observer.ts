import type {
  LostRun,
  ObservedRefusal,
  ObservedRun,
  RunnerState,
  RunObservation,
  RunObserver,
  WebhookAttempt,
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

  posted({ outcome, event }: WebhookAttempt): void {
    this.#count(({ posted }) => posted.inc({ outcome, event }));
  }

  async scrape({ runs, sessions, processes, backlog, probes }: RunnerState): Promise<string> {
    const metrics = await this.#opened();
    metrics.active.set(runs);
    metrics.sessions.set(sessions);
    metrics.processes.set(processes);
    // Without an answer of the store there is no figure, instead of an old one or 0.
    metrics.queued.remove();
    metrics.deliveries.reset();
    if (backlog !== undefined) {
      metrics.queued.set(backlog.queuedRuns);
      metrics.deliveries.set({ state: "pending" }, backlog.pendingDeliveries);
      metrics.deliveries.set({ state: "failed" }, backlog.failedDeliveries);
    }
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
