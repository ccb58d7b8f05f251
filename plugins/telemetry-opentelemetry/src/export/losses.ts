import type { Log } from "@ambit/core/plugin";

/**
 * Why spans are lost: their queue was full, an export failed for good, the collector rejected some of them
 * (`partial_success`), something that isn't a collector answered, or the server ended before they were sent.
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

/** Spans of all destinations, since the start. */
export class SpanCounts {
  exported = 0;
  readonly lost: Record<LossReason, number> = {
    queue_full: 0,
    export_failed: 0,
    rejected: 0,
    not_a_collector: 0,
    shutdown: 0,
  };

  /** In the Prometheus text format. */
  get text(): string {
    return [
      "# HELP ambit_trace_spans_exported_total Spans that a collector accepted.",
      "# TYPE ambit_trace_spans_exported_total counter",
      `ambit_trace_spans_exported_total ${this.exported}`,
      "# HELP ambit_trace_spans_lost_total Spans that no collector accepted, by reason.",
      "# TYPE ambit_trace_spans_lost_total counter",
      ...lossReasons.map((reason) => `ambit_trace_spans_lost_total{reason="${reason}"} ${this.lost[reason]}`),
      "",
    ].join("\n");
  }
}

/** Milliseconds between two lines of the log about one destination. */
const reportMs = 10_000;

/** Accounts for the spans that one destination loses: a warning when losses begin, and their number when they end. */
export class Losses {
  #open: Counts = {};
  #began: number | undefined;
  #ended = Number.NEGATIVE_INFINITY;

  constructor(
    readonly origin: string,
    readonly counts: SpanCounts,
    readonly log: Log,
    readonly now: () => number = () => performance.now(),
  ) {}

  lost(reason: LossReason, spans: number, error?: string): void {
    if (spans <= 0) return;
    this.counts.lost[reason] += spans;
    this.#open[reason] = (this.#open[reason] ?? 0) + spans;
    if (this.#began !== undefined) return;
    this.#began = this.now();
    // Losses that come and go under load are counted, and not each begun anew in the log.
    if (this.#began - this.#ended < reportMs) return;
    const { origin } = this;
    this.log.warn({ origin, reason, spans, error }, "spans can't be exported and are lost");
  }

  /** @param isWhole whether none of the batch was rejected. */
  accepted(spans: number, isWhole: boolean): void {
    this.counts.exported += spans;
    if (isWhole && this.#began !== undefined && this.now() - this.#ended >= reportMs)
      this.#end("spans are exported again");
  }

  /** Nothing more is sent. */
  close(): void {
    if (this.#began !== undefined) this.#end("the last spans were lost");
  }

  #end(message: string): void {
    const { origin } = this;
    const seconds = Math.round((this.now() - (this.#began ?? 0)) / 1_000);
    this.log.warn({ origin, lost: this.#open, seconds }, message);
    this.#open = {};
    this.#began = undefined;
    this.#ended = this.now();
  }
}
