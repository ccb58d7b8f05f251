import { createRequire } from "node:module";

/** A message of protobufjs. */
interface MessageType {
  decode(bytes: Uint8Array): object;
  /** Of proto3's JSON. */
  fromObject(json: object): object;
  toObject(
    message: object,
    options: {
      readonly enums: StringConstructor;
      readonly longs: StringConstructor;
      readonly bytes: StringConstructor;
    },
  ): object;
}

interface Service {
  readonly [message: string]: MessageType;
}

interface Definitions {
  readonly opentelemetry: {
    readonly proto: {
      readonly collector: Readonly<Record<"trace" | "metrics" | "logs", { readonly v1: Service }>>;
    };
  };
}

const require = createRequire(import.meta.url);
const { opentelemetry }: Definitions = require("otlp-definitions/build/src/generated/root.js");

export const signals = {
  traces: { area: "trace", request: "ExportTraceServiceRequest", service: "TraceService" },
  metrics: { area: "metrics", request: "ExportMetricsServiceRequest", service: "MetricsService" },
  logs: { area: "logs", request: "ExportLogsServiceRequest", service: "LogsService" },
} as const;
export type Signal = keyof typeof signals;

function requestOf(signal: Signal): MessageType {
  const { area, request } = signals[signal];
  const type = opentelemetry.proto.collector[area].v1[request];
  if (type === undefined) throw new Error(`The definitions have no ${request}.`);
  return type;
}

/** A request as its definition reads it: enums by name, numbers of 64 bits as texts, ids in hexadecimal. */
export function decoded(signal: Signal, body: Uint8Array, isJson: boolean): Record<string, unknown> {
  const type = requestOf(signal);
  const message = isJson
    ? type.fromObject(withIds(JSON.parse(Buffer.from(body).toString()), "hex", "base64"))
    : type.decode(body);
  const plain = type.toObject(message, { enums: String, longs: String, bytes: String });
  return { ...withIds(plain, "base64", "hex") };
}

/** OTLP's JSON has ids in hexadecimal; that of proto3 has bytes in base64. */
const ids: ReadonlySet<string> = new Set(["traceId", "spanId", "parentSpanId"]);

function withIds(value: object, from: BufferEncoding, to: BufferEncoding): object {
  const text = JSON.stringify(value, (key, inner: unknown) =>
    ids.has(key) && typeof inner === "string" ? Buffer.from(inner, from).toString(to) : inner,
  );
  const changed: object = JSON.parse(text);
  return changed;
}
