import type { RemoteSpan } from "@ambit/core/plugin";

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
export function isTracestate(text: string): boolean {
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
export function isBaggage(text: string): boolean {
  if (text.length > maxBaggageLength || !/^[\t\x20-\x7e]*$/.test(text)) return false;
  const entries = text.split(",").map((entry) => entry.trim());
  return entries.length <= maxBaggageEntries && entries.every((entry) => baggageEntry.test(entry));
}
