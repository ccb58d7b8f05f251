import type { ObservedRefusal } from "@ambit/core/plugin";
import type { TraceStart } from "./run-trace.js";
import { type EndedSpan, Span } from "./span.js";

/** The span of a request that started no run: from its arrival to its refusal. Contains nothing that its caller wrote. */
export function refusedRequest(
  { code, capabilities, status, begunAt, trace: caller }: ObservedRefusal,
  { traceId, flags }: TraceStart,
  now: () => number = Date.now,
): EndedSpan {
  const span = new Span(
    {
      traceId,
      flags,
      tracestate: caller?.tracestate,
      name: "invoke_agent",
      parent: caller === undefined ? undefined : { spanId: caller.spanId, isRemote: true },
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "http.response.status_code": status,
        "ambit.refused.capabilities": capabilities.length === 0 ? undefined : capabilities,
      },
      start: begunAt,
    },
    now,
  );
  span.failed(code, "The request was refused.");
  return span.end();
}
