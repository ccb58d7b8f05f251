import { isJsonObject, type RunRequest, runRequestSchema, type Warning } from "@ambit/core/contract";
import type { CallersSpan, RemoteSpan } from "@ambit/core/plugin";
import { z } from "zod";

/** Headers of the caller's request, by W3C Trace Context and W3C Baggage. */
export const callersTraceSchema = z.object({
  traceparent: z.string().optional(),
  tracestate: z.string().optional(),
  baggage: z.string().optional(),
});
export type CallersTrace = Readonly<z.output<typeof callersTraceSchema>>;

interface Read {
  readonly request: RunRequest;
  readonly warnings: readonly Warning[];
}

/**
 * The request with the caller's trace: that of its `context`, else that of the headers. `tracestate` belongs to the
 * `traceparent` beside it. What is malformed is left out with a warning, since a tracing fault mustn't stop a run. Pure.
 */
export function inCallersTrace({ request, warnings }: Read, headers: CallersTrace = {}): Read {
  const inBody = request.context?.propagation ?? {};
  const ignored: Warning[] = [];
  const [trace, place] = inBody.traceparent === undefined ? [headers, ""] : [inBody, "context.propagation."];
  const span = trace.traceparent === undefined ? undefined : remoteSpan(trace.traceparent);
  if (trace.traceparent !== undefined && span === undefined)
    ignored.push({
      path: `${place}traceparent`,
      message: "is malformed and was ignored: the run doesn't continue the caller's trace",
    });
  const tracestate = span === undefined ? undefined : trace.tracestate;
  const passesState = tracestate !== undefined && isTracestate(tracestate);
  if (tracestate !== undefined && tracestate !== "" && !passesState)
    ignored.push({ path: `${place}tracestate`, message: "is malformed or too long, and was ignored" });
  if (inBody.traceparent === undefined && inBody.tracestate !== undefined)
    ignored.push({
      path: "context.propagation.tracestate",
      message: "has no effect without a `traceparent` beside it",
    });
  const baggage = inBody.baggage ?? headers.baggage;
  const passesBaggage = baggage !== undefined && isBaggage(baggage);
  if (baggage !== undefined && baggage !== "" && !passesBaggage)
    ignored.push({
      path: inBody.baggage === undefined ? "baggage" : "context.propagation.baggage",
      message: "is malformed or too long, and was ignored",
    });
  const propagation = {
    ...(span === undefined ? {} : { traceparent: traceparentOf(span) }),
    ...(passesState ? { tracestate } : {}),
    ...(passesBaggage ? { baggage } : {}),
  };
  const { context: _given, ...rest } = request;
  const context = Object.keys(propagation).length === 0 ? {} : { context: { propagation } };
  return { request: { ...rest, ...context }, warnings: [...warnings, ...ignored] };
}

/** The caller's span in these headers; undefined without a well-formed one. Pure. */
export function callersSpan({ traceparent, tracestate }: CallersTrace): CallersSpan | undefined {
  const span = traceparent === undefined ? undefined : remoteSpan(traceparent);
  if (span === undefined) return undefined;
  const passesState = tracestate !== undefined && isTracestate(tracestate);
  return { ...span, ...(passesState ? { tracestate } : {}) };
}

/** What a body says about its telemetry. */
export interface RequestedTelemetry {
  readonly trace?: CallersTrace;
  readonly telemetry?: RunRequest["telemetry"];
}

const propagationSchema = z.object({ context: z.object({ propagation: callersTraceSchema }) });
const telemetrySchema = runRequestSchema.pick({ telemetry: true });

/** Values in a refused body's telemetry: it wasn't pruned, and to parse headers takes long. */
const maxValues = 1_000;

function hasAtMost(value: unknown, max: number): boolean {
  const open = [value];
  for (let left = max; open.length > 0; left -= 1) {
    const next = open.pop();
    const inner = typeof next === "object" && next !== null ? Object.values(next) : [];
    if (inner.length > left) return false;
    open.push(...inner);
  }
  return true;
}

/** What a refused body says about its telemetry, whatever else is in it. Pure. */
export function askedIn(body: unknown): RequestedTelemetry {
  const trace = propagationSchema.safeParse(body).data?.context.propagation;
  const telemetrySent = isJsonObject(body) ? body.telemetry : undefined;
  const telemetry = hasAtMost(telemetrySent, maxValues)
    ? telemetrySchema.safeParse({ telemetry: telemetrySent }).data?.telemetry
    : undefined;
  return {
    ...(trace?.traceparent === undefined ? {} : { trace }),
    telemetry,
  };
}

/** Version 00 is exactly four fields. A later version may append others. */
const traceparentPattern =
  /^(?:00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})|(?!00|ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?)$/;

/** Reads a `traceparent`; undefined for one that isn't well formed. Pure. */
export function remoteSpan(traceparent: string): RemoteSpan | undefined {
  const match = traceparentPattern.exec(traceparent);
  const [traceId, spanId, flags] = match?.slice(1).filter((part) => part !== undefined) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

/** In version 00, which is the one that Ambit passes on. Pure. */
export function traceparentOf({ traceId, spanId, flags }: RemoteSpan): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, "0")}`;
}

/** The longest `tracestate` that OpenTelemetry's SDKs keep, and the number of entries that W3C allows. */
const maxTracestateLength = 512;
const maxTracestateEntries = 32;
const tracestateEntry =
  /^[a-z0-9][a-z0-9_\-*/]{0,255}(?:@[a-z][a-z0-9_\-*/]{0,13})?=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** Whether a `tracestate` is well formed and short enough to be passed on. Pure. */
function isTracestate(text: string): boolean {
  if (text.length > maxTracestateLength) return false;
  const entries = text.split(",").flatMap((entry) => entry.trim() || []);
  return (
    entries.length > 0 &&
    entries.length <= maxTracestateEntries &&
    entries.every((entry) => tracestateEntry.test(entry))
  );
}

/** The limits of W3C Baggage. */
const maxBaggageLength = 8_192;
const maxBaggageEntries = 180;
const baggageEntry =
  /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+\s*=\s*[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*(?:\s*;[^,]*)?$/;

/** Whether a `baggage` is well formed and short enough to be passed on. Pure. */
function isBaggage(text: string): boolean {
  if (text.length > maxBaggageLength || !/^[\t\x20-\x7e]*$/.test(text)) return false;
  const entries = text.split(",").map((entry) => entry.trim());
  return entries.length <= maxBaggageEntries && entries.every((entry) => baggageEntry.test(entry));
}
