import { createHash } from "node:crypto";
import { createTraceState, type HrTime, SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { hrTimeDuration, type InstrumentationScope, millisToHrTime } from "@opentelemetry/core";
import { OTLPExporterBase } from "@opentelemetry/otlp-exporter-base";
import type { Resource } from "@opentelemetry/resources";
import { BatchSpanProcessor, type ReadableSpan } from "@opentelemetry/sdk-trace";
import type { ExportDestination, HttpDestination } from "../destination.js";
import type { QueueLimits } from "../environment.js";
import type { AttributeValue, EndedSpan } from "../trace/span.js";
import { agentFor, requireOpenAddress } from "./agents.js";
import { AccountingDelegate, type ExportProgress, httpSender, maxExportsOf } from "./delegate.js";
import { CountedQueue, closeQueues } from "./queue.js";
import type { Sdk } from "./sdk.js";
import { traceSignal } from "./signal.js";

/** A span of ours as the SDK's processors and exporters take it. Pure. */
export function readableSpan(span: EndedSpan, resource: Resource, scope: InstrumentationScope): ReadableSpan {
  const { traceId, parent, error, tracestate } = span;
  const traceState = tracestate === undefined ? {} : { traceState: createTraceState(tracestate) };
  const context = { traceId, spanId: span.spanId, traceFlags: span.flags, ...traceState };
  const startTime = millisToHrTime(span.start);
  const endTime: HrTime = millisToHrTime(Math.max(span.start, span.end));
  return {
    name: span.name,
    kind: span.kind === "client" ? SpanKind.CLIENT : SpanKind.INTERNAL,
    spanContext: () => context,
    ...(parent === undefined ? {} : { parentSpanContext: { ...context, ...parent } }),
    startTime,
    endTime,
    duration: hrTimeDuration(startTime, endTime),
    ended: true,
    status:
      error === undefined ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: error },
    attributes: mutable(span.attributes),
    links: span.links.map(({ traceId, spanId, flags }) => ({
      context: { traceId, spanId, traceFlags: flags },
      attributes: {},
    })),
    events: span.events.map(({ name, at, attributes }) => ({
      name,
      time: millisToHrTime(at),
      attributes: mutable(attributes),
    })),
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: span.droppedEvents,
    droppedLinksCount: 0,
  };
}

function mutable(attributes: Readonly<Record<string, AttributeValue>>) {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, typeof value === "object" ? [...value] : value]),
  );
}

/** Destinations at once. Callers choose theirs, so the one longest unused makes room. */
const maxDestinations = 32;

/** The queue of a destination that isn't in OpenTelemetry's variables. */
const ownLimits: QueueLimits = {
  maxQueueSize: 2_048,
  maxExportBatchSize: 512,
  scheduledDelayMillis: 1_000,
  exportTimeoutMillis: 30_000,
};

/** A queue of spans for each destination. Nothing here is waited for by a run. */
export class SpanQueues {
  readonly #queues = new Map<string, CountedQueue<ReadableSpan>>();

  constructor(readonly sdk: Sdk) {}

  /**
   * @param share of the queue that such spans may fill.
   * @throws AddressRefused for a literal address that a caller may not reach.
   */
  add(span: EndedSpan, destination: ExportDestination, share?: number): void {
    const key = keyOf(destination);
    const queue = this.#queues.get(key) ?? this.#open(destination);
    // Moved to the end: the map's order is the order of use.
    this.#queues.delete(key);
    this.#queues.set(key, queue);
    this.#dropOldest();
    const { resource, scope } = this.sdk;
    queue.add(readableSpan(span, resource, scope), share);
  }

  /** Sends what waits, until `signal` aborts; what is left then is counted as lost. Never rejects. */
  async close(signal: AbortSignal): Promise<void> {
    const queues = [...this.#queues.values()];
    this.#queues.clear();
    await closeQueues(queues, signal);
  }

  #open(destination: ExportDestination): CountedQueue<ReadableSpan> {
    const { sdk } = this;
    const { config, environment, upstreamProxy } = sdk.telemetry;
    if (destination === "environment") {
      const limits = environment.spans;
      const losses = sdk.losses("traces", environment.exported.traces?.origin ?? "");
      const maxExports = maxExportsOf(limits);
      return this.#queue(limits, losses, (progress) =>
        sdk.toEnvironment(traceSignal, maxExports, losses, progress),
      );
    }
    requireOpenAddress(destination, config);
    const losses = sdk.losses("traces", new URL(destination.url).origin);
    const agents = agentFor(destination, config, upstreamProxy);
    const send = httpSender(traceSignal, destination, agents, maxExportsOf(ownLimits));
    return this.#queue(
      ownLimits,
      losses,
      (progress) => new AccountingDelegate(traceSignal, "http/protobuf", send, losses, progress),
    );
  }

  #queue(
    limits: QueueLimits,
    losses: CountedQueue<ReadableSpan>["losses"],
    delegate: (progress: ExportProgress) => AccountingDelegate<ReadableSpan[]>,
  ): CountedQueue<ReadableSpan> {
    return new CountedQueue(limits.maxQueueSize, losses, (progress) => {
      const exporter = new OTLPExporterBase(delegate(progress));
      const processor = new BatchSpanProcessor({ exporter, ...limits });
      return { add: (span) => processor.onEnd(span), shutdown: () => processor.shutdown() };
    });
  }

  #dropOldest(): void {
    const [oldest] = this.#queues;
    if (oldest === undefined || this.#queues.size <= maxDestinations) return;
    this.#queues.delete(oldest[0]);
    void oldest[1].close();
  }
}

function keyOf(destination: ExportDestination): string {
  return destination === "environment" ? destination : digestOf(destination);
}

/** The headers hold credentials. */
function digestOf({ url, headers, isCallers }: HttpDestination): string {
  const sorted = Object.entries(headers).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([url, isCallers, sorted]))
    .digest("base64url");
}
