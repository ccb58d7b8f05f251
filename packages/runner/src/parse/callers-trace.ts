import { isJsonObject, type RunRequest, runRequestSchema, type Warning } from "@ambit/core/contract";
import type { CallersSpan } from "@ambit/core/plugin";
import { z } from "zod";
import { isBaggage, isTracestate, remoteSpan, traceparentOf } from "./trace-context.js";

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
  const given = request.context?.propagation ?? {};
  const found: Warning[] = [];
  const [trace, place] = given.traceparent === undefined ? [headers, ""] : [given, "context.propagation."];
  const span = trace.traceparent === undefined ? undefined : remoteSpan(trace.traceparent);
  if (trace.traceparent !== undefined && span === undefined)
    found.push({
      path: `${place}traceparent`,
      message: "is malformed and was ignored: the run doesn't continue the caller's trace",
    });
  const tracestate = span === undefined ? undefined : trace.tracestate;
  const passesState = tracestate !== undefined && isTracestate(tracestate);
  if (tracestate !== undefined && tracestate !== "" && !passesState)
    found.push({ path: `${place}tracestate`, message: "is malformed or too long, and was ignored" });
  if (given.traceparent === undefined && given.tracestate !== undefined)
    found.push({
      path: "context.propagation.tracestate",
      message: "has no effect without a `traceparent` beside it",
    });
  const baggage = given.baggage ?? headers.baggage;
  const passesBaggage = baggage !== undefined && isBaggage(baggage);
  if (baggage !== undefined && baggage !== "" && !passesBaggage)
    found.push({
      path: given.baggage === undefined ? "baggage" : "context.propagation.baggage",
      message: "is malformed or too long, and was ignored",
    });
  const propagation = {
    ...(span === undefined ? {} : { traceparent: traceparentOf(span) }),
    ...(passesState ? { tracestate } : {}),
    ...(passesBaggage ? { baggage } : {}),
  };
  const { context: _given, ...rest } = request;
  const context = Object.keys(propagation).length === 0 ? {} : { context: { propagation } };
  return { request: { ...rest, ...context }, warnings: [...warnings, ...found] };
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

/** Of a body that is refused, whatever else is in it. Pure. */
export function askedIn(body: unknown): RequestedTelemetry {
  const trace = propagationSchema.safeParse(body).data?.context.propagation;
  const given = isJsonObject(body) ? body.telemetry : undefined;
  const telemetry = hasAtMost(given, maxValues)
    ? telemetrySchema.safeParse({ telemetry: given }).data?.telemetry
    : undefined;
  return {
    ...(trace?.traceparent === undefined ? {} : { trace }),
    telemetry,
  };
}
