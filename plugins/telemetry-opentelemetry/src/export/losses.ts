import type { Log } from "@ambit/core/plugin";
import { type SignalName, signals } from "../environment.js";

/**
 * Why telemetry is lost: its queue was full, an export failed for good, the collector rejected some of it
 * (`partial_success`), something that isn't a collector answered, or the server ended before it was sent.
 */
export const lossReasons = [
  "queue_full",
  "export_failed",
  "rejected",
  "not_a_collector",
  "shutdown",
] as const;
export type LossReason = (typeof lossReasons)[number];

type Counts = Partial<Record<LossReason, number>>;

/** What was made and isn't waiting any more, since the start: spans, data points and log records of all destinations. */
export class ExportCounts {
  readonly #exported = new Map<SignalName, number>();
  readonly #lost = new Map<SignalName, Counts>();

  exported(signal: SignalName): number {
    return this.#exported.get(signal) ?? 0;
  }

  lost(signal: SignalName, reason: LossReason): number {
    return this.#lost.get(signal)?.[reason] ?? 0;
  }

  addExported(signal: SignalName, count: number): void {
    this.#exported.set(signal, this.exported(signal) + count);
  }

  addLost(signal: SignalName, reason: LossReason, count: number): void {
    this.#lost.set(signal, { ...this.#lost.get(signal), [reason]: this.lost(signal, reason) + count });
  }

  /** In the Prometheus text format. */
  get text(): string {
    const exported = signals.map(
      (signal) => `ambit_telemetry_exported_total{signal="${signal}"} ${this.exported(signal)}`,
    );
    const lost = signals.flatMap((signal) =>
      lossReasons.map(
        (reason) =>
          `ambit_telemetry_lost_total{signal="${signal}",reason="${reason}"} ${this.lost(signal, reason)}`,
      ),
    );
    return [
      "# HELP ambit_telemetry_exported_total Spans, data points and log records that a collector accepted.",
      "# TYPE ambit_telemetry_exported_total counter",
      ...exported,
      "# HELP ambit_telemetry_lost_total Spans, data points and log records that no collector accepted, by reason.",
      "# TYPE ambit_telemetry_lost_total counter",
      ...lost,
      "",
    ].join("\n");
  }
}

/** Milliseconds between two lines of the log about one destination. */
const reportMs = 10_000;

/** Accounts for what one destination loses of a signal: a warning when losses begin, and their number when they end. */
export class Losses {
  #open: Counts = {};
  #began: number | undefined;
  #ended = Number.NEGATIVE_INFINITY;

  constructor(
    readonly signal: SignalName,
    readonly origin: string,
    readonly counts: ExportCounts,
    readonly log: Log,
    readonly now: () => number = () => performance.now(),
  ) {}

  lost(reason: LossReason, count: number, error?: string): void {
    if (count <= 0) return;
    const { signal, origin } = this;
    this.counts.addLost(signal, reason, count);
    this.#open[reason] = (this.#open[reason] ?? 0) + count;
    if (this.#began !== undefined) return;
    this.#began = this.now();
    // Losses that come and go under load are counted, and not each begun anew in the log.
    if (this.#began - this.#ended < reportMs) return;
    this.log.warn({ signal, origin, reason, count, error }, "telemetry can't be exported and is lost");
  }

  /** @param isWhole whether none of the batch was rejected. */
  accepted(count: number, isWhole: boolean): void {
    this.counts.addExported(this.signal, count);
    if (isWhole && this.#began !== undefined && this.now() - this.#ended >= reportMs)
      this.#end("telemetry is exported again");
  }

  /** Nothing more is sent. */
  close(): void {
    if (this.#began !== undefined) this.#end("the last telemetry was lost");
  }

  #end(message: string): void {
    const { signal, origin } = this;
    const seconds = Math.round((this.now() - (this.#began ?? 0)) / 1_000);
    this.log.warn({ signal, origin, lost: this.#open, seconds }, message);
    this.#open = {};
    this.#began = undefined;
    this.#ended = this.now();
  }
}
