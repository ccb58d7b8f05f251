import { createHash } from "node:crypto";
import type { Log } from "@ambit/core/plugin";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace";
import type { TelemetryConfig } from "../config.js";
import type { EndedSpan } from "../trace/span.js";
import { requireOpenAddress } from "./agents.js";
import type { Destination } from "./destination.js";
import { openExporter } from "./exporter.js";
import { readableSpan } from "./readable-span.js";

/** Destinations at once. Callers choose theirs, so the one longest unused makes room. */
const maxDestinations = 32;
/** Spans that wait for a destination; beyond that they are dropped. */
const maxSpans = 2_048;
/** Milliseconds until what a run left is sent. */
const delayMs = 1_000;

/** A queue for each destination. Nothing here is waited for by a run. */
export class Exporters {
  readonly #processors = new Map<string, BatchSpanProcessor>();
  readonly #resource;

  constructor(
    readonly config: TelemetryConfig,
    readonly version: string,
  ) {
    this.#resource = resourceFromAttributes({
      "service.name": config.serviceName,
      "service.version": version,
    });
  }

  /** @throws AddressRefused for a literal address that a caller may not reach. */
  add(span: EndedSpan, destination: Destination, log: Log): void {
    const key = keyOf(destination);
    const processor = this.#processors.get(key) ?? this.#open(destination, log);
    // Moved to the end: the map's order is the order of use.
    this.#processors.delete(key);
    this.#processors.set(key, processor);
    this.#dropOldest();
    processor.onEnd(readableSpan(span, this.#resource, this.version));
  }

  /** Sends what waits. Never rejects. */
  async close(): Promise<void> {
    const processors = [...this.#processors.values()];
    this.#processors.clear();
    await Promise.allSettled(processors.map((processor) => processor.shutdown()));
  }

  #open(destination: Destination, log: Log): BatchSpanProcessor {
    requireOpenAddress(destination, this.config);
    return new BatchSpanProcessor({
      exporter: openExporter(destination, this.config, log),
      maxQueueSize: maxSpans,
      scheduledDelayMillis: delayMs,
    });
  }

  #dropOldest(): void {
    const [oldest] = this.#processors;
    if (oldest === undefined || this.#processors.size <= maxDestinations) return;
    this.#processors.delete(oldest[0]);
    // Sends what it has first; the exporter reports what fails.
    oldest[1].shutdown().catch(() => undefined);
  }
}

/** A digest: the headers hold credentials. */
function keyOf({ url, headers, isCallers }: Destination): string {
  const sorted = Object.entries(headers).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([url, isCallers, sorted]))
    .digest("base64url");
}
