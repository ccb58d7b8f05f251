import type { Log } from "@ambit/core/plugin";
import { BatchSpanProcessor, type ReadableSpan } from "@opentelemetry/sdk-trace";
import type { TelemetryConfig } from "../config.js";
import { requireOpenAddress } from "./agents.js";
import type { Destination } from "./destination.js";
import { AccountingExporter } from "./exporter.js";
import { Losses, type SpanCounts } from "./losses.js";

/** Spans that wait for a destination; beyond that they are dropped. */
const maxSpans = 2_048;
/** Milliseconds until what a run left is sent. */
const delayMs = 1_000;

/** The spans that wait for one destination. The SDK's queue drops without telling, so its length is counted here. */
export class SpanQueue {
  readonly #processor: BatchSpanProcessor;
  readonly #losses: Losses;
  #waiting = 0;
  #unsettled = 0;

  /** @throws AddressRefused for a literal address that a caller may not reach. */
  constructor(destination: Destination, config: TelemetryConfig, counts: SpanCounts, log: Log) {
    requireOpenAddress(destination, config);
    this.#losses = new Losses(new URL(destination.url).origin, counts, log);
    const exporter = new AccountingExporter(destination, config, this.#losses, {
      taken: (spans) => {
        this.#waiting -= spans;
      },
      settled: (spans) => {
        this.#unsettled -= spans;
      },
    });
    this.#processor = new BatchSpanProcessor({
      exporter,
      maxQueueSize: maxSpans,
      scheduledDelayMillis: delayMs,
    });
  }

  add(span: ReadableSpan): void {
    if (this.#waiting >= maxSpans) {
      this.#losses.lost("queue_full", 1);
      return;
    }
    this.#waiting += 1;
    this.#unsettled += 1;
    this.#processor.onEnd(span);
  }

  /** Sends what waits. Never rejects. */
  async close(): Promise<void> {
    await this.#processor.shutdown().catch(() => undefined);
    this.abandon();
  }

  /** What hasn't been sent by now is lost. */
  abandon(): void {
    this.#losses.lost("shutdown", this.#unsettled);
    this.#unsettled = 0;
    this.#losses.close();
  }
}
