import {
  type IExporterMetricsHelper,
  type ISerializer,
  JsonLogsSerializer,
  JsonMetricsSerializer,
  JsonTraceSerializer,
  LogsExporterMetricsHelper,
  MetricsExporterMetricsHelper,
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
  TraceExporterMetricsHelper,
} from "@opentelemetry/otlp-transformer";
import type { ReadableLogRecord } from "@opentelemetry/sdk-logs";
import type { ResourceMetrics } from "@opentelemetry/sdk-metrics";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import type { SignalName } from "../environment.js";

/** What a collector answered to a batch that it took. */
export interface PartialSuccess {
  readonly rejected: number;
  readonly message: string;
}

/** How the SDK writes one signal. */
export interface ExportedSignal<Data> {
  readonly name: SignalName;
  /** Of its exporters in the SDK's own figures. */
  readonly component: string;
  readonly counting: IExporterMetricsHelper<Data>;
  /** Its service in OTLP's definitions. */
  readonly grpc: { readonly service: string; readonly method: string };
  readonly protobuf: Writing<Data>;
  readonly json: Writing<Data>;
}

interface Writing<Data> {
  readonly contentType: string;
  readonly write: (data: Data) => Uint8Array | undefined;
  /** @throws unknown for an answer that isn't OTLP */
  readonly read: (answer: Uint8Array) => PartialSuccess;
}

type ExportResponse<Part> = { readonly partialSuccess?: Part };
type PartialSuccessMessage = { readonly errorMessage?: string };

/** @param rejected its field in an answer: JSON has it as a text, since it is an int64. */
function signalOf<Data, Part extends PartialSuccessMessage>(
  given: Pick<ExportedSignal<Data>, "name" | "component" | "counting" | "grpc">,
  protobuf: ISerializer<Data, ExportResponse<Part>>,
  json: ISerializer<Data, ExportResponse<Part>>,
  rejected: (part: Part) => number | undefined,
): ExportedSignal<Data> {
  const read = ({ partialSuccess }: ExportResponse<Part>): PartialSuccess => ({
    rejected: partialSuccess === undefined ? 0 : Number(rejected(partialSuccess) ?? 0),
    message: partialSuccess?.errorMessage ?? "",
  });
  return {
    ...given,
    protobuf: {
      contentType: "application/x-protobuf",
      write: (data) => protobuf.serializeRequest(data),
      read: (answer) => read(protobuf.deserializeResponse(answer)),
    },
    json: {
      contentType: "application/json",
      write: (data) => json.serializeRequest(data),
      read: (answer) => {
        // The SDK reads what isn't JSON as an answer without content.
        if (answer.length > 0) JSON.parse(Buffer.from(answer).toString());
        return read(json.deserializeResponse(answer));
      },
    },
  };
}

const method = (area: string, service: string) =>
  `/opentelemetry.proto.collector.${area}.v1.${service}/Export`;

export const traceSignal: ExportedSignal<ReadableSpan[]> = signalOf(
  {
    name: "traces",
    component: "span_exporter",
    counting: TraceExporterMetricsHelper,
    grpc: { service: "TraceExportService", method: method("trace", "TraceService") },
  },
  ProtobufTraceSerializer,
  JsonTraceSerializer,
  ({ rejectedSpans }) => rejectedSpans,
);

export const metricSignal: ExportedSignal<ResourceMetrics> = signalOf(
  {
    name: "metrics",
    component: "metric_exporter",
    counting: MetricsExporterMetricsHelper,
    grpc: { service: "MetricsExportService", method: method("metrics", "MetricsService") },
  },
  ProtobufMetricsSerializer,
  JsonMetricsSerializer,
  ({ rejectedDataPoints }) => rejectedDataPoints,
);

export const logSignal: ExportedSignal<ReadableLogRecord[]> = signalOf(
  {
    name: "logs",
    component: "log_exporter",
    counting: LogsExporterMetricsHelper,
    grpc: { service: "LogsExportService", method: method("logs", "LogsService") },
  },
  ProtobufLogsSerializer,
  JsonLogsSerializer,
  ({ rejectedLogRecords }) => rejectedLogRecords,
);
