import type { Log } from "@ambit/core/plugin";
import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import { OTLPExporterBase } from "@opentelemetry/otlp-exporter-base";
import { createOtlpHttpExportDelegate } from "@opentelemetry/otlp-exporter-base/node-http";
import { ProtobufTraceSerializer, TraceExporterMetricsHelper } from "@opentelemetry/otlp-transformer";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import type { TelemetryConfig } from "../config.js";
import { agentFor } from "./agents.js";
import type { Destination } from "./destination.js";

/** Milliseconds for one export, its retries included. */
const exportMs = 10_000;

/**
 * OTLP over HTTP as protobuf. Built from the SDK's parts, because its ready-made exporter also reads
 * `OTEL_EXPORTER_OTLP_*`: the operator's headers would go to a caller's endpoint.
 */
export function openExporter(destination: Destination, config: TelemetryConfig, log: Log): SpanExporter {
  const { url, headers } = destination;
  const options = {
    url,
    headers: async () => ({ ...headers, "Content-Type": "application/x-protobuf" }),
    timeoutMillis: exportMs,
    concurrencyLimit: 4,
    compression: "gzip" as const,
    agentFactory: agentFor(destination, config),
  };
  const delegate = createOtlpHttpExportDelegate(
    options,
    ProtobufTraceSerializer,
    "otlp_http_span_exporter",
    TraceExporterMetricsHelper,
    undefined,
  );
  return new ReportingExporter(new OTLPExporterBase<ReadableSpan[]>(delegate), new URL(url).origin, log);
}

/** Says once that a destination takes nothing, and once that it does again. */
export class ReportingExporter implements SpanExporter {
  #isDown = false;

  constructor(
    readonly exporter: Pick<OTLPExporterBase<ReadableSpan[]>, "export" | "forceFlush" | "shutdown">,
    readonly origin: string,
    readonly log: Log,
  ) {}

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.exporter.export(spans, (result) => {
      this.#report(result, spans.length);
      // The failure was reported: the SDK's own handler would write it to the console.
      done({ code: ExportResultCode.SUCCESS });
    });
  }

  forceFlush(): Promise<void> {
    return this.exporter.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.exporter.shutdown();
  }

  #report({ code, error }: ExportResult, spans: number): void {
    const isDown = code !== ExportResultCode.SUCCESS;
    if (isDown === this.#isDown) return;
    this.#isDown = isDown;
    const { origin } = this;
    if (isDown)
      this.log.warn({ origin, spans, error: error?.message }, "traces can't be exported and are lost");
    else this.log.info({ origin }, "traces are exported again");
  }
}
