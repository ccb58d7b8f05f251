import type {
  LostRun,
  ObservedRefusal,
  ObservedRun,
  PrewarmClaim,
  RunnerState,
  RunObservation,
  RunObserver,
  WebhookAttempt,
} from "@ambit/core/plugin";
import type { Measurement, MetricChange } from "./definitions.js";
import { RunFigures } from "./run-figures.js";

/** Counts what happens in runs. A subclass keeps the figures, in its format. */
export abstract class FigureObserver implements RunObserver {
  abstract readonly name: string;

  /** Where the figures are kept. Loaded with the first of them, not with the server. */
  protected abstract opened(): Promise<{ record(change: MetricChange): void }>;

  readonly record = (change: MetricChange): void => {
    void this.opened().then((figures) => figures.record(change));
  };

  observe(run: ObservedRun): RunObservation {
    return new RunFigures(run, this.record);
  }

  refused({ code, capabilities }: ObservedRefusal): void {
    this.record({ counter: "refused", by: 1, labels: { code } });
    for (const capability of capabilities) this.record({ counter: "missing", by: 1, labels: { capability } });
  }

  lost({ harness, sandbox }: LostRun): void {
    this.record({ counter: "runs", by: 1, labels: { outcome: "runner_lost", harness, sandbox } });
  }

  prewarmed({ outcome, harness }: PrewarmClaim): void {
    this.record({ counter: "prewarmClaims", by: 1, labels: { outcome, harness } });
  }

  posted({ outcome, event }: WebhookAttempt): void {
    this.record({ counter: "posted", by: 1, labels: { outcome, event } });
  }
}

/** The present values of all gauges. Without an answer of the store its own have none, instead of an old one or 0. Pure. */
export function measure({
  runs,
  sessions,
  processes,
  prewarmed,
  backlog,
  probes,
}: RunnerState): readonly Measurement[] {
  return [
    { gauge: "active", value: runs, labels: {} },
    { gauge: "sessions", value: sessions, labels: {} },
    { gauge: "processes", value: processes, labels: {} },
    { gauge: "prewarmed", value: prewarmed, labels: {} },
    ...(backlog === undefined ? [] : measureBacklog(backlog)),
    ...probes.flatMap(({ kind, actor, ageMs, findings }): Measurement[] => [
      { gauge: "probeAge", value: ageMs / 1_000, labels: { kind, actor } },
      ...findings.map(
        ({ capability, proven }): Measurement => ({
          gauge: "proven",
          value: proven ? 1 : 0,
          labels: { kind, actor, capability },
        }),
      ),
    ]),
  ];
}

function measureBacklog({
  queuedRuns,
  pendingDeliveries,
  failedDeliveries,
}: NonNullable<RunnerState["backlog"]>): readonly Measurement[] {
  return [
    { gauge: "queued", value: queuedRuns, labels: {} },
    { gauge: "deliveries", value: pendingDeliveries, labels: { state: "pending" } },
    { gauge: "deliveries", value: failedDeliveries, labels: { state: "failed" } },
  ];
}
