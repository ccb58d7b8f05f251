import type { IncomingMessage } from "node:http";
import type { CallersTrace, Runner, RunOptions, Slot } from "@ambit/runner";
import type { QuotaPlace } from "../../tenants/quotas.js";
import { rulesOfCaller } from "./admit-caller.js";

/** A slot of the runner in addition to the project's. @throws AtCapacity after releasing the project's slot */
export function reserve(runner: Runner, place: QuotaPlace): Slot {
  try {
    return runner.reserve();
  } catch (error) {
    place.release();
    throw error;
  }
}

/** The caller that owns the run, and its trace, for the runner. */
export function callerOptions(incoming: IncomingMessage): Pick<RunOptions, "caller" | "trace"> {
  const caller = rulesOfCaller(incoming);
  return { trace: callersTrace(incoming), ...(caller === undefined ? {} : { caller }) };
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
