/** A caller's span, as its `traceparent` names it. */
export interface CallersSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly flags: number;
}

/** Reads a `traceparent` of W3C Trace Context; undefined for one that isn't well formed. Pure. */
export function callersSpan(traceparent: string | undefined): CallersSpan | undefined {
  const [, traceId, spanId, flags] =
    /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/.exec(
      traceparent ?? "",
    ) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}
