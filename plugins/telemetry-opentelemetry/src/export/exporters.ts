import { createHash, randomUUID } from "node:crypto";
import type { Log } from "@ambit/core/plugin";
import { DiagLogLevel, diag } from "@opentelemetry/api";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type { TelemetryConfig } from "../config.js";
import type { EndedSpan } from "../trace/span.js";
import type { Destination } from "./destination.js";
import type { SpanCounts } from "./losses.js";
import { SpanQueue } from "./queue.js";
import { readableSpan } from "./readable-span.js";

/** Destinations at once. Callers choose theirs, so the one longest unused makes room. */
const maxDestinations = 32;

/** A queue for each destination. Nothing here is waited for by a run. */
export class Exporters {
  readonly #queues = new Map<string, SpanQueue>();
  readonly #resource;

  /** @param log of the server: the SDK's own warnings go there, as text alone, since its values may be content. */
  constructor(
    readonly config: TelemetryConfig,
    readonly version: string,
    readonly counts: SpanCounts,
    readonly log: Log,
  ) {
    this.#resource = resourceFromAttributes({
      "service.name": config.serviceName,
      "service.version": version,
      "service.instance.id": randomUUID(),
    });
    const say = (text: string) => log.warn({ sdk: text.slice(0, 500) }, "OpenTelemetry's SDK warns");
    const silent = () => {};
    const logger = { error: say, warn: say, info: silent, debug: silent, verbose: silent };
    diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  }

  /** @throws AddressRefused for a literal address that a caller may not reach. */
  add(span: EndedSpan, destination: Destination): void {
    const key = keyOf(destination);
    const queue = this.#queues.get(key) ?? new SpanQueue(destination, this.config, this.counts, this.log);
    // Moved to the end: the map's order is the order of use.
    this.#queues.delete(key);
    this.#queues.set(key, queue);
    this.#dropOldest();
    queue.add(readableSpan(span, this.#resource, this.version));
  }

  /** Sends what waits, until `signal` aborts; what is left then is counted as lost. Never rejects. */
  async close(signal: AbortSignal): Promise<void> {
    const queues = [...this.#queues.values()];
    this.#queues.clear();
    const aborted = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([Promise.all(queues.map((queue) => queue.close())), aborted]);
    for (const queue of queues) queue.abandon();
  }

  #dropOldest(): void {
    const [oldest] = this.#queues;
    if (oldest === undefined || this.#queues.size <= maxDestinations) return;
    this.#queues.delete(oldest[0]);
    void oldest[1].close();
  }
}

/** A digest: the headers hold credentials. */
function keyOf({ url, headers, isCallers }: Destination): string {
  const sorted = Object.entries(headers).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([url, isCallers, sorted]))
    .digest("base64url");
}
