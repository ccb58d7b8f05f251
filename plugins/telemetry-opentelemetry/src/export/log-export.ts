import type { LogLine } from "@ambit/core/plugin";
import {
  type AnyValue,
  type Context,
  type Logger,
  ROOT_CONTEXT,
  SeverityNumber,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { OTLPExporterBase } from "@opentelemetry/otlp-exporter-base";
import { BatchLogRecordProcessor, LoggerProvider, type ReadWriteLogRecord } from "@opentelemetry/sdk-logs";
import { maxExportsOf } from "./delegate.js";
import type { Losses } from "./losses.js";
import { CountedQueue, closeQueues } from "./queue.js";
import type { Sdk } from "./sdk.js";
import { logSignal } from "./signal.js";

const severities = {
  debug: SeverityNumber.DEBUG,
  info: SeverityNumber.INFO,
  warn: SeverityNumber.WARN,
  error: SeverityNumber.ERROR,
} as const;

/** Attributes of one line, and characters of one. */
const maxAttributes = 64;
const maxTextLength = 16_384;

/** The runner's log as log records of OTLP. */
export class LogExport {
  readonly #losses: Losses;
  readonly #queue: CountedQueue<ReadWriteLogRecord>;
  readonly #logger: Logger;

  constructor(sdk: Sdk) {
    const { logs: limits, exported } = sdk.telemetry.environment;
    this.#losses = sdk.losses("logs", exported.logs?.origin ?? "");
    this.#queue = new CountedQueue(limits.maxQueueSize, this.#losses, (progress) => {
      const delegate = sdk.toEnvironment(logSignal, maxExportsOf(limits), this.#losses, progress);
      const processor = new BatchLogRecordProcessor({ exporter: new OTLPExporterBase(delegate), ...limits });
      return { add: (record) => processor.onEmit(record), shutdown: () => processor.shutdown() };
    });
    const { resource, scope } = sdk;
    const processor = {
      onEmit: (record: ReadWriteLogRecord) => this.#queue.add(record),
      forceFlush: async () => {},
      shutdown: async () => {},
    };
    const limited = { attributeCountLimit: maxAttributes, attributeValueLengthLimit: maxTextLength };
    const provider = new LoggerProvider({ resource, processors: [processor], logRecordLimits: limited });
    this.#logger = provider.getLogger(scope.name, scope.version, { schemaUrl: scope.schemaUrl });
  }

  add({ level, at, message, fields }: LogLine): void {
    const { traceId, spanId, ...attributes } = fields;
    this.#logger.emit({
      timestamp: at,
      severityNumber: severities[level],
      severityText: level.toUpperCase(),
      body: message,
      attributes: attributesOf(attributes),
      context: contextOf(traceId, spanId),
    });
  }

  lost(count: number): void {
    this.#losses.lost("queue_full", count);
  }

  close(signal: AbortSignal): Promise<void> {
    return closeQueues([this.#queue], signal);
  }
}

/** Values of JSON as they are; the SDK takes no `undefined` inside of them, which JSON doesn't have. */
function attributesOf(fields: Readonly<Record<string, unknown>>): Record<string, AnyValue> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, attributeOf(value)]));
}

function attributeOf(value: unknown): AnyValue {
  if (value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean")
    return value;
  return JSON.stringify(value);
}

function contextOf(traceId: unknown, spanId: unknown): Context {
  if (typeof traceId !== "string" || typeof spanId !== "string") return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: TraceFlags.SAMPLED });
}
