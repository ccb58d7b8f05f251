import { readFileSync } from "node:fs";
import type { Log, ObservedRun, RunObservation, RunObserver } from "@ambit/core/plugin";
import { messageOf } from "@ambit/core/plugin";
import type { TelemetryConfig } from "./config.js";
import { type Destination, destinationOf } from "./export/destination.js";
import type { Exporters } from "./export/exporters.js";
import { SpanCounts } from "./export/losses.js";
import { RunTrace } from "./trace/run-trace.js";
import type { EndedSpan } from "./trace/span.js";

/** Traces runs. A run for whose trace there is no destination isn't watched. */
export class TelemetryObserver implements RunObserver {
  readonly name = "opentelemetry";
  readonly #counts = new SpanCounts();
  #exporters: Promise<Exporters> | undefined;

  constructor(readonly config: TelemetryConfig) {}

  observe(run: ObservedRun): RunObservation | undefined {
    const destination = destinationOf(run.request, this.config);
    if (destination === undefined) return undefined;
    // Asked for by the first run: it is there before the run's first span has ended.
    const exporters = this.#opened(run.log);
    return new RunTrace(run, (span) => void this.#add(exporters, span, destination, run.log));
  }

  async close(signal: AbortSignal): Promise<void> {
    const exporters = await this.#exporters;
    await exporters?.close(signal);
  }

  async scrape(): Promise<string> {
    return this.#counts.text;
  }

  async #add(opened: Promise<Exporters>, span: EndedSpan, destination: Destination, log: Log): Promise<void> {
    // The caller decided against this trace (W3C: the sampled flag).
    if ((span.flags & 1) === 0) return;
    try {
      (await opened).add(span, destination);
    } catch (error) {
      // Once for each run: its own span is the last.
      if (span.parent?.isRemote !== false)
        log.warn({ traceId: span.traceId, error: messageOf(error) }, "a run's trace is not exported");
    }
  }

  /** The SDK takes tens of milliseconds to load: neither the server's start nor a run waits for it. */
  #opened(log: Log): Promise<Exporters> {
    this.#exporters ??= import("./export/exporters.js").then(
      ({ Exporters }) => new Exporters(this.config, version(), this.#counts, log),
    );
    return this.#exporters;
  }
}

function version(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  );
  return manifest.version;
}
