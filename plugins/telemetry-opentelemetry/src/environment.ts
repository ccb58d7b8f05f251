/** What telemetry consists of, as OpenTelemetry names it. */
export const signals = ["traces", "metrics", "logs"] as const;
export type SignalName = (typeof signals)[number];

const protocols = ["grpc", "http/protobuf", "http/json"] as const;
export type OtlpProtocol = (typeof protocols)[number];

/** Limits of a queue (`OTEL_BSP_*` for spans, `OTEL_BLRP_*` for log records). */
export interface QueueLimits {
  readonly maxQueueSize: number;
  readonly maxExportBatchSize: number;
  /** Milliseconds until what waits is sent. */
  readonly scheduledDelayMillis: number;
  /** Milliseconds for one export. */
  readonly exportTimeoutMillis: number;
}

export type SamplerName = "always_on" | "always_off" | "traceidratio";

export interface Sampling {
  /** A caller's decision is followed. */
  readonly isParentBased: boolean;
  readonly root: SamplerName;
  /** Of `traceidratio`: 0 to 1. */
  readonly ratio: number;
}

export interface Exported {
  readonly protocol: OtlpProtocol;
  /** Of the destination, for the log: without a path or credentials. */
  readonly origin: string;
}

/** What the operator asks for by OpenTelemetry's own variables. */
export interface OtelEnvironment {
  /** `OTEL_SDK_DISABLED`: nothing is exported. */
  readonly isDisabled: boolean;
  /** The signals that have a destination. */
  readonly exported: Readonly<Partial<Record<SignalName, Exported>>>;
  readonly sampling: Sampling;
  readonly spans: QueueLimits;
  readonly logs: QueueLimits;
  readonly metrics: { readonly intervalMs: number; readonly timeoutMs: number };
  /** Values that have no effect, each with what is used instead. */
  readonly warnings: readonly string[];
}

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Only the variables that no part of the SDK reads by itself: the exporters read endpoints, headers, certificates,
 * time-outs and compression, and the resource reads `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`. An unusable value
 * is left out with a warning, as the specification says. Pure.
 */
export function readEnvironment(variables: Variables): OtelEnvironment {
  const warnings: string[] = [];
  const read = new Reading(variables, (warning) => warnings.push(warning));
  const isDisabled = read.text("OTEL_SDK_DISABLED")?.toLowerCase() === "true";
  const intervalMs = read.count("OTEL_METRIC_EXPORT_INTERVAL", 60_000);
  return {
    isDisabled,
    exported: isDisabled ? {} : exportedBy(read),
    sampling: samplingOf(read),
    spans: queueOf(read, "OTEL_BSP", 1_000),
    logs: queueOf(read, "OTEL_BLRP", 1_000),
    metrics: {
      intervalMs,
      timeoutMs: Math.min(read.count("OTEL_METRIC_EXPORT_TIMEOUT", 30_000), intervalMs),
    },
    warnings,
  };
}

/** Values as the specification of the variables reads them: an empty one is absent. */
class Reading {
  constructor(
    readonly variables: Variables,
    readonly warn: (warning: string) => void,
  ) {}

  text(name: string): string | undefined {
    return this.variables[name]?.trim() || undefined;
  }

  /** A number above 0. */
  count(name: string, byDefault: number): number {
    const text = this.text(name);
    if (text === undefined) return byDefault;
    const value = Number(text);
    // Beyond that a timer would fire immediately.
    if (Number.isInteger(value) && value > 0 && value < 2 ** 31) return value;
    this.warn(`${name} is '${text}': it must be a whole number above 0, and ${byDefault} is used`);
    return byDefault;
  }

  oneOf<Value extends string>(name: string, values: readonly Value[], byDefault: Value): Value {
    const text = this.text(name);
    if (text === undefined) return byDefault;
    const known = values.find((value) => value === text.toLowerCase());
    if (known === undefined)
      this.warn(`${name} is '${text}': it must be one of ${values.join(", ")}, and ${byDefault} is used`);
    return known ?? byDefault;
  }
}

/** The headers that the SDK's exporters send, which may be credentials: `name=value`, percent-encoded, by commas. Pure. */
export function headersIn(variables: Variables): Readonly<Record<string, string>>[] {
  const names = ["OTEL_EXPORTER_OTLP_HEADERS", ...signals.map((name) => headersOf(name.toUpperCase()))];
  const pairs = names.flatMap((name) => variables[name]?.split(",") ?? []);
  return pairs.flatMap((pair) => {
    const [name = "", ...rest] = pair.split("=");
    const value = rest.join("=").trim();
    // As written, and as it is sent.
    return [value, decoded(value)].map((one) => ({ [name.trim()]: one }));
  });
}

const headersOf = (signal: string) => `OTEL_EXPORTER_OTLP_${signal}_HEADERS`;

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** A signal is exported where it has an endpoint, or `OTEL_*_EXPORTER` asks for OTLP. */
function exportedBy(read: Reading): OtelEnvironment["exported"] {
  const common = read.text("OTEL_EXPORTER_OTLP_ENDPOINT");
  const protocol = read.oneOf("OTEL_EXPORTER_OTLP_PROTOCOL", protocols, "http/protobuf");
  return Object.fromEntries(
    signals.flatMap((signal) => {
      const name = signal.toUpperCase();
      const endpoint = read.text(`OTEL_EXPORTER_OTLP_${name}_ENDPOINT`) ?? common;
      const exporter = `OTEL_${name}_EXPORTER`;
      const asked = read
        .text(exporter)
        ?.split(",")
        .map((text) => text.trim().toLowerCase());
      const others = asked?.filter((one) => one !== "otlp" && one !== "none") ?? [];
      if (others.length > 0)
        read.warn(
          `${exporter} names ${others.join(", ")}: Ambit has otlp and none, and leaves the others out`,
        );
      const isExported = asked === undefined ? endpoint !== undefined : asked.includes("otlp");
      if (!isExported) return [];
      const own = read.oneOf(`OTEL_EXPORTER_OTLP_${name}_PROTOCOL`, protocols, protocol);
      const origin = originOf(endpoint ?? `http://localhost:${own === "grpc" ? 4317 : 4318}`);
      return [[signal, { protocol: own, origin }]];
    }),
  );
}

/** gRPC takes `collector:4317` as well. */
function originOf(endpoint: string): string {
  const url = /^\w+:\/\//.test(endpoint) ? endpoint : `grpc://${endpoint}`;
  if (!URL.canParse(url)) return "an endpoint that is no URL";
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}`;
}

const samplers = ["always_on", "always_off", "traceidratio"] as const;
const samplerNames = [
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
  ...samplers,
] as const;

function samplingOf(read: Reading): Sampling {
  const name = read.oneOf("OTEL_TRACES_SAMPLER", samplerNames, "parentbased_always_on");
  const root = samplers.find((sampler) => name.endsWith(sampler)) ?? "always_on";
  const argument = read.text("OTEL_TRACES_SAMPLER_ARG");
  const ratio = Number(argument ?? 1);
  const isRatio = ratio >= 0 && ratio <= 1;
  if (root === "traceidratio" && !isRatio)
    read.warn(`OTEL_TRACES_SAMPLER_ARG is '${argument}': it must be a number from 0 to 1, and 1 is used`);
  return { isParentBased: name.startsWith("parentbased_"), root, ratio: isRatio ? ratio : 1 };
}

function queueOf(read: Reading, prefix: string, delayMs: number): QueueLimits {
  const maxQueueSize = read.count(`${prefix}_MAX_QUEUE_SIZE`, 2_048);
  const maxExportBatchSize = read.count(`${prefix}_MAX_EXPORT_BATCH_SIZE`, 512);
  return {
    maxQueueSize,
    maxExportBatchSize: Math.min(maxExportBatchSize, maxQueueSize),
    scheduledDelayMillis: read.count(`${prefix}_SCHEDULE_DELAY`, delayMs),
    exportTimeoutMillis: read.count(`${prefix}_EXPORT_TIMEOUT`, 30_000),
  };
}
