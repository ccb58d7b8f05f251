import type {
  Log,
  LostRun,
  ObservedRefusal,
  ObservedRun,
  RunObservation,
  RunObserver,
} from "@ambit/core/plugin";
import { messageOf } from "@ambit/core/plugin";
import { destinationOf, type ExportDestination, operatorsDestination } from "./destination.js";
import type { SpanQueues } from "./export/span-queues.js";
import type { Telemetry } from "./telemetry.js";
import { lostRun, newRecovery, type Recovery, readRecovery } from "./trace/recovery.js";
import { refusedRequest } from "./trace/refused-request.js";
import { newTraceId, RunTrace, type TraceStart } from "./trace/run-trace.js";
import { isSampled } from "./trace/sampling.js";
import type { EndedSpan } from "./trace/span.js";

/** Of a queue: refusals, which are cheap to cause, leave room for the spans of runs. */
const shareOfRefusals = 0.5;

/** Traces runs. A run for whose trace there is no destination isn't watched. */
export class TelemetryObserver implements RunObserver {
  readonly name = "opentelemetry";
  #queues: Promise<SpanQueues> | undefined;

  constructor(readonly telemetry: Telemetry) {}

  observe(run: ObservedRun): RunObservation | undefined {
    const destination = this.#destinationOf(run.request);
    if (destination === undefined) return undefined;
    const traceId = run.parent?.traceId ?? newTraceId();
    const flags = this.#flags(destination, traceId, run.parent?.flags);
    // Asked for by the first run: it is there before the run's first span has ended.
    const queues = this.#opened();
    const emit = (span: EndedSpan) => void this.#add(queues, span, destination, run.log);
    return new RunTrace(run, emit, { traceId, flags }, destination);
  }

  refused(refusal: ObservedRefusal): void {
    // Nobody who isn't known may fill a queue.
    if (refusal.code === "unauthorized" || refusal.code === "forbidden") return;
    const destination = this.#destinationOf({ telemetry: refusal.telemetry });
    if (destination === undefined) return;
    const { trace: caller } = refusal;
    const traceId = caller?.traceId ?? newTraceId();
    const flags = this.#flags(destination, traceId, caller?.flags);
    const span = refusedRequest(refusal, { traceId, flags });
    void this.#add(this.#opened(), span, destination, this.telemetry.log, shareOfRefusals);
  }

  lost(run: LostRun): void {
    const stored = run.recovery === undefined ? undefined : readRecovery(run.recovery);
    const destination = this.#recovered(stored?.destination);
    if (destination === undefined) return;
    const recovery = stored ?? newRecovery(run, this.#newTrace(destination));
    void this.#add(this.#opened(), lostRun(run, recovery), destination, this.telemetry.log);
  }

  async close(signal: AbortSignal): Promise<void> {
    const queues = await this.#queues;
    await queues?.close(signal);
  }

  async scrape(): Promise<string> {
    return this.telemetry.counts.text;
  }

  #destinationOf(request: Parameters<typeof destinationOf>[0]): ExportDestination | undefined {
    const { config, environment } = this.telemetry;
    if (environment.isDisabled) return undefined;
    return destinationOf(request, config, environment.exported.traces !== undefined);
  }

  /** The operator's destination as it is here and now; a caller's as its request named it. */
  #recovered(callers: Recovery["destination"]): ExportDestination | undefined {
    const { config, environment } = this.telemetry;
    if (environment.isDisabled) return undefined;
    if (callers !== undefined && config.requestEndpoints === "allow") return { ...callers, isCallers: true };
    return operatorsDestination(config, environment.exported.traces !== undefined);
  }

  #newTrace(destination: ExportDestination): TraceStart {
    const traceId = newTraceId();
    return { traceId, flags: this.#flags(destination, traceId, undefined) };
  }

  /** The operator's sampler decides on what goes to the operator: a caller that names a destination wants its traces. */
  #flags(destination: ExportDestination, traceId: string, parentFlags: number | undefined): number {
    const { sampling } = this.telemetry.environment;
    if (destination !== "environment") return parentFlags ?? 1;
    const others = (parentFlags ?? 0) & ~1;
    return isSampled(sampling, traceId, parentFlags) ? others | 1 : others;
  }

  async #add(
    opened: Promise<SpanQueues>,
    span: EndedSpan,
    destination: ExportDestination,
    log: Log,
    share?: number,
  ): Promise<void> {
    // W3C: the sampled flag.
    if ((span.flags & 1) === 0) return;
    try {
      (await opened).add(span, destination, share);
    } catch (error) {
      // Once for each run: its own span is the last.
      if (span.parent?.isRemote !== false)
        log.warn({ traceId: span.traceId, error: messageOf(error) }, "a run's trace is not exported");
    }
  }

  #opened(): Promise<SpanQueues> {
    this.#queues ??= Promise.all([this.telemetry.sdk(), import("./export/span-queues.js")]).then(
      ([sdk, { SpanQueues }]) => new SpanQueues(sdk),
    );
    return this.#queues;
  }
}
