import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { IOtlpExportDelegate } from "@opentelemetry/otlp-exporter-base";

/**
 * Status codes of gRPC with which OTLP's specification has a batch sent again: CANCELLED, DEADLINE_EXCEEDED, ABORTED,
 * OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS.
 */
const retryable: ReadonlySet<unknown> = new Set([1, 4, 10, 11, 14, 15]);

const firstDelayMs = 1_000;
const maxDelayMs = 5_000;

/** Sends a batch again, as the SDK does over HTTP but not over gRPC. No attempt begins after `timeoutMs`. */
export class RetryingGrpc<Data> implements IOtlpExportDelegate<Data> {
  readonly #pending = new Set<Promise<void>>();

  constructor(
    readonly delegate: IOtlpExportDelegate<Data>,
    readonly timeoutMs: number,
  ) {}

  export(data: Data, done: (result: ExportResult) => void): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#pending.add(promise);
    this.#attempt(data, performance.now() + this.timeoutMs, firstDelayMs, (result) => {
      this.#pending.delete(promise);
      done(result);
      resolve();
    });
  }

  async forceFlush(): Promise<void> {
    await Promise.all(this.#pending);
  }

  async shutdown(): Promise<void> {
    await this.forceFlush();
    await this.delegate.shutdown();
  }

  setMetrics(...given: Parameters<IOtlpExportDelegate<Data>["setMetrics"]>): void {
    this.delegate.setMetrics(...given);
  }

  #attempt(data: Data, end: number, delayMs: number, done: (result: ExportResult) => void): void {
    this.delegate.export(data, (result) => {
      // Spread, so that replicas that lost their collector together don't return together.
      const waitMs = delayMs * (0.8 + 0.4 * Math.random());
      if (!isRetryable(result) || performance.now() + waitMs > end) return done(result);
      const next = Math.min(delayMs * 1.5, maxDelayMs);
      setTimeout(() => this.#attempt(data, end, next, done), waitMs);
    });
  }
}

function isRetryable({ code, error }: ExportResult): boolean {
  if (code === ExportResultCode.SUCCESS || error === undefined) return false;
  return "code" in error && retryable.has(error.code);
}
