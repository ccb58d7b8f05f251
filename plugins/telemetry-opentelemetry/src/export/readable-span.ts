import { createTraceState, type HrTime, SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { hrTimeDuration, type InstrumentationScope, millisToHrTime } from "@opentelemetry/core";
import type { Resource } from "@opentelemetry/resources";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import type { AttributeValue, EndedSpan } from "../trace/span.js";

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
