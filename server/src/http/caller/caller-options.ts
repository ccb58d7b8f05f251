import type { IncomingMessage } from "node:http";
import type { CallersTrace, RunOptions } from "@ambit/runner";
import { rulesOfCaller } from "./admit-caller.js";

/** The caller that owns the run, and its trace, for the runner. */
export function callerOptions(incoming: IncomingMessage): Pick<RunOptions, "caller" | "trace"> {
  const caller = rulesOfCaller(incoming);
  return { trace: callersTrace(incoming), caller };
}

/** The headers of W3C Trace Context and W3C Baggage. */
export function callersTrace({ headers }: IncomingMessage): CallersTrace {
  const { traceparent, tracestate, baggage } = headers;
  return {
    // A repeated one is joined here too: it is malformed then.
    ...(traceparent === undefined ? {} : { traceparent: [traceparent].flat().join(",") }),
    ...(tracestate === undefined ? {} : { tracestate: [tracestate].flat().join(",") }),
    ...(baggage === undefined ? {} : { baggage: [baggage].flat().join(",") }),
  };
}
