import {
  type Log,
  type LostRun,
  messageOf,
  type ObservedRefusal,
  type ObservedRun,
  type RunObservation,
  type RunObserver,
} from "@ambit/core/plugin";
import { destinationOf, type ExportDestination, operatorsDestination } from "./destination.js";
import type { Sampling } from "./environment.js";
import type { SpanQueues } from "./export/span-queues.js";
import type { Telemetry } from "./telemetry.js";
import { lostRun, newRecovery, type Recovery, readRecovery } from "./trace/recovery.js";
import { newTraceId, RunTrace, type TraceStart } from "./trace/run-trace.js";
import { type EndedSpan, Span } from "./trace/span.js";

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

/** Whether a run's trace is exported. @param parentFlags W3C flags of the caller's span. Pure. */
export function isSampled(
  { isParentBased, root, ratio }: Sampling,
  traceId: string,
  parentFlags: number | undefined,
): boolean {
  if (isParentBased && parentFlags !== undefined) return (parentFlags & 1) === 1;
  if (root !== "traceidratio") return root === "always_on";
  return ratio === 1 || fold(traceId) < Math.floor(ratio * 0xffffffff);
}

/**
 * The four words of a trace id in one, as the SDK of OpenTelemetry for JavaScript compares it. Its own sampler would have
 * to be loaded before the first run.
 */
function fold(traceId: string): number {
  let folded = 0;
  for (let at = 0; at < 32; at += 8) folded ^= Number.parseInt(traceId.slice(at, at + 8), 16);
  return folded >>> 0;
}
