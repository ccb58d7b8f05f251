import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import { OTLPExporterBase } from "@opentelemetry/otlp-exporter-base";
import { createOtlpHttpExportDelegate } from "@opentelemetry/otlp-exporter-base/node-http";
import { ProtobufTraceSerializer, TraceExporterMetricsHelper } from "@opentelemetry/otlp-transformer";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import type { TelemetryConfig } from "../config.js";
import { agentFor } from "./agents.js";
import type { Destination } from "./destination.js";
import type { Losses } from "./losses.js";

/** Milliseconds for one export, its retries included. */
const exportMs = 10_000;

/** Batches at once: when a queue is closed, its four batches follow the one under way. */
const maxExports = 5;

/** Both are called with a number of spans. */
export interface ExportProgress {
  /** They left the queue. */
  taken(spans: number): void;
  /** They were accepted or lost. */
  settled(spans: number): void;
}

/** What a collector answered to a batch that it took. */
type Answer = { readonly rejected: number; readonly message: string } | "unreadable";

/**
 * OTLP over HTTP as protobuf. Built from the SDK's parts, because its ready-made exporter also reads
 * `OTEL_EXPORTER_OTLP_*`: the operator's headers would go to a caller's endpoint.
 */
export class AccountingExporter implements SpanExporter {
  readonly #exporter: OTLPExporterBase<ReadableSpan[]>;
  #answer: Answer | undefined;

  constructor(
    destination: Destination,
    config: TelemetryConfig,
    readonly losses: Losses,
    readonly progress: ExportProgress,
  ) {
    const { url, headers } = destination;
    const options = {
      url,
      headers: async () => ({ ...headers, "Content-Type": "application/x-protobuf" }),
      timeoutMillis: exportMs,
      concurrencyLimit: maxExports,
      compression: "gzip" as const,
      agentFactory: agentFor(destination, config),
    };
    const serializer = {
      serializeRequest: (spans: ReadableSpan[]) => ProtobufTraceSerializer.serializeRequest(spans),
      // The SDK calls this directly before it reports the batch as sent, and only writes its content to its own log.
      deserializeResponse: (data: Uint8Array) => {
        this.#answer = answerOf(data);
        return {};
      },
    };
    this.#exporter = new OTLPExporterBase<ReadableSpan[]>(
      createOtlpHttpExportDelegate(
        options,
        serializer,
        "otlp_http_span_exporter",
        TraceExporterMetricsHelper,
        undefined,
      ),
    );
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.progress.taken(spans.length);
    this.#exporter.export(spans, (result) => {
      const answer = this.#answer;
      this.#answer = undefined;
      this.progress.settled(spans.length);
      this.#account(result, spans.length, answer);
      // The failure was reported: the SDK's own handler would write it to the console.
      done({ code: ExportResultCode.SUCCESS });
    });
  }

  forceFlush(): Promise<void> {
    return this.#exporter.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }

  #account({ code, error }: ExportResult, spans: number, answer: Answer | undefined): void {
    if (code !== ExportResultCode.SUCCESS) this.losses.lost("export_failed", spans, error?.message);
    else if (answer === "unreadable") this.losses.lost("not_a_collector", spans, "the answer isn't OTLP");
    else {
      const rejected = Math.min(answer?.rejected ?? 0, spans);
      this.losses.accepted(spans - rejected, rejected === 0);
      this.losses.lost("rejected", rejected, answer?.message);
    }
  }
}

/** Characters of a collector's message in the log. */
const maxMessageLength = 500;

/** An empty answer accepts all. A login page or proxy's error with status 200 is HTML, which no collector sends. */
function answerOf(data: Uint8Array): Answer {
  if (/^\s*<[!a-z?]/i.test(Buffer.from(data.subarray(0, 64)).toString("latin1"))) return "unreadable";
  try {
    const { partialSuccess } = ProtobufTraceSerializer.deserializeResponse(data);
    return {
      rejected: Number(partialSuccess?.rejectedSpans ?? 0),
      message: (partialSuccess?.errorMessage ?? "").slice(0, maxMessageLength),
    };
  } catch {
    return "unreadable";
  }
}
