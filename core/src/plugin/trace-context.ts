/** A span of a caller, as a `traceparent` of W3C Trace Context names it. */
export interface RemoteSpan {
  /** Hexadecimal, as is the span's id. */
  readonly traceId: string;
  readonly spanId: string;
  /** The lowest bit: the caller samples the trace. */
  readonly flags: number;
}

/** The same, with what its vendor keeps beside it. */
export interface CallersSpan extends RemoteSpan {
  readonly tracestate?: string;
}

/** What passes on a trace: headers of an HTTP request, or keys of `_meta` in MCP and ACP. Empty without a trace. */
export interface TraceContext {
  readonly traceparent?: string;
  readonly tracestate?: string;
}
