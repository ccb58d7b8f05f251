/** What observers are told: of one run as it goes on, and of what happens beside runs. */

import { callPure, inOffer, ofOffer, pluginReturns } from "@ambit/core";
import {
  type AgentEvent,
  type Failure,
  projectOf,
  type RunRequest,
  type RunResult,
} from "@ambit/core/contract";
import type {
  Log,
  LostRun,
  ModelExchange,
  ObservedRun,
  PrewarmClaim,
  RemoteSpan,
  RunnerState,
  RunObservation,
  RunObserver,
  StageName,
  TraceContext,
  TracedCall,
  WebhookAttempt,
} from "@ambit/core/plugin";
import type { RunLimits } from "../limits.js";
import { type CallersTrace, callersSpan, remoteSpan, traceparentOf } from "../parse/callers-trace.js";
import type { PlannedRun } from "../tokens.js";

/** Characters of what one observer needs of a lost run. */
const maxRecoveryLength = 16_384;

/** What is stored with a run for those who end or continue it. */
export interface RunRecovery {
  /** The `traceparent` of the run's own span. */
  readonly trace?: string;
  /** What observers need, by their names. May hold credentials. */
  readonly recoveries: Readonly<Record<string, string>>;
}

/** Notifies the run's observers. None of them can slow the run down, or fail it. */
export class Observation {
  /** Each observer's observation, by its name. */
  readonly #observations = new Map<string, RunObservation>();
  #recovery: RunRecovery = { recoveries: {} };

  constructor(
    private readonly run: PlannedRun,
    private readonly observers: readonly RunObserver[],
    private readonly log: RunLogger,
  ) {}

  /** @param redact replaces the run's credentials in a text. */
  begin(redact: (text: string) => string): void {
    const { log } = this;
    const { id: runId, request, plan } = this.run;
    const { harness, sandbox, required } = plan;
    const parent = this.#parent;
    const model = plan.gateway?.use.model ?? request.model;
    const observed: ObservedRun = {
      runId,
      request,
      redact,
      log,
      parent,
      harness: harness.actor.id,
      sandbox: sandbox.actor.name,
      model,
      guarantees: required.map(({ capability }) => capability),
    };
    for (const observer of this.observers) {
      const observation = this.#safely(observer.name, () =>
        callPure(observer, "observe", pluginReturns.observation, () => observer.observe(observed)),
      );
      if (observation !== undefined) this.#observations.set(observer.name, ofOffer(observer, observation));
    }
    this.log.span = () => this.#span();
    const span = this.#span();
    this.#recovery = {
      ...(span === undefined ? {} : { trace: traceparentOf(span) }),
      recoveries: this.#recoveries(),
    };
  }

  /** What another process needs to report the run's end, or to continue it. */
  get recovery(): RunRecovery {
    return this.#recovery;
  }

  #recoveries(): Readonly<Record<string, string>> {
    const all = [...this.#observations].flatMap(([name, one]) => {
      const recovery = this.#safely(name, () => one.recovery?.());
      if (recovery === undefined) return [];
      if (recovery.length <= maxRecoveryLength) return [[name, recovery]];
      this.log.debug({ observer: name }, "what an observer needs of a lost run is too long to be kept");
      return [];
    });
    return Object.fromEntries(all);
  }

  /** The run answers questions of a run that had paused. @param traceparent that run's span */
  resumed(traceparent: string): void {
    const span = remoteSpan(traceparent);
    if (span !== undefined) this.#notify((one) => one.resumed?.(span));
  }

  /** The run won't begin: its observers hear no more of it. */
  withdraw(): void {
    this.#observations.clear();
  }

  /** The trace that the run belongs to. Default: the caller's. */
  get traceId(): string | undefined {
    return this.#first((one) => one.traceId) ?? this.#parent?.traceId;
  }

  /** Headers for requests of the run or of one of its tool calls. Default: the caller's. Empty without a trace. */
  trace(call?: TracedCall): TraceContext {
    const { tracestate } = this.run.request.context?.propagation ?? {};
    const span = this.#span(call);
    if (span === undefined) return {};
    const isCallers = span.traceId === this.#parent?.traceId;
    return {
      traceparent: traceparentOf(span),
      ...(isCallers && tracestate !== undefined ? { tracestate } : {}),
    };
  }

  /** The run's present span, or that of a call. Default: the caller's. */
  #span(call?: TracedCall): RemoteSpan | undefined {
    const traceparent = this.#first((one) => one.traceparent?.(call));
    return traceparent === undefined ? this.#parent : remoteSpan(traceparent);
  }

  /** The caller's span. */
  get #parent(): RemoteSpan | undefined {
    const { traceparent } = this.run.request.context?.propagation ?? {};
    return traceparent === undefined ? undefined : remoteSpan(traceparent);
  }

  entered(stage: StageName): void {
    this.#notify((one) => one.entered?.(stage));
  }

  /** A call continues under another id. */
  callRenamed(from: string, to: string): void {
    if (from !== to) this.#notify((one) => one.callRenamed?.(from, to));
  }

  /** @param event redacted. */
  happened(event: AgentEvent): void {
    if (this.#observations.size === 0) return;
    this.#notify((one) => one.happened?.(event));
  }

  modelCalled(model: string): ModelExchange {
    const exchanges = [...this.#observations].flatMap(([name, one]) => {
      const exchange = this.#safely(name, () => one.modelCalled?.(model));
      return exchange === undefined ? [] : [{ name, exchange }];
    });
    const notify = (step: (exchange: ModelExchange) => void) => {
      for (const { name, exchange } of exchanges) this.#safely(name, () => step(exchange));
    };
    return {
      used: (usage) => notify((exchange) => exchange.used(usage)),
      ended: (failure) => notify((exchange) => exchange.ended(failure)),
    };
  }

  ended(result: RunResult): void {
    this.#notify((one) => one.ended?.(result));
    const last = this.#span();
    this.log.span = () => last;
    this.#observations.clear();
  }

  #notify(step: (observation: RunObservation) => void): void {
    for (const [name, observation] of this.#observations) this.#safely(name, () => step(observation));
  }

  #first(read: (observation: RunObservation) => string | undefined): string | undefined {
    for (const [name, observation] of this.#observations) {
      const text = this.#safely(name, () => read(observation));
      if (text !== undefined) return text;
    }
    return undefined;
  }

  #safely<Value>(observer: string, step: () => Value): Value | undefined {
    try {
      return step();
    } catch (error) {
      this.#observations.delete(observer);
      this.log.error(
        { runId: this.run.id, observer, error },
        "an observer failed: it no longer observes this run",
      );
      return undefined;
    }
  }
}

/** The log of one run: each line has the ids to search by, and those of the span in which it was written. */
export class RunLogger implements Log {
  readonly #ids: Readonly<Record<string, string>>;
  /** The run's present span. Default: the run has no trace. */
  span: () => RemoteSpan | undefined = () => undefined;

  constructor(
    readonly log: Log,
    runId: string,
    request: Pick<RunRequest, "sessionId" | "projectId" | "runContext">,
  ) {
    const { sessionId } = request;
    const projectId = projectOf(request);
    this.#ids = {
      runId,
      ...(sessionId === undefined ? {} : { sessionId }),
      ...(projectId === undefined ? {} : { projectId }),
    };
  }

  debug(fields: Readonly<Record<string, unknown>>, message: string): void {
    this.log.debug(this.#with(fields), message);
  }

  info(fields: Readonly<Record<string, unknown>>, message: string): void {
    this.log.info(this.#with(fields), message);
  }

  warn(fields: Readonly<Record<string, unknown>>, message: string): void {
    this.log.warn(this.#with(fields), message);
  }

  error(fields: Readonly<Record<string, unknown>>, message: string): void {
    this.log.error(this.#with(fields), message);
  }

  #with(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const span = this.span();
    const trace = span === undefined ? {} : { traceId: span.traceId, spanId: span.spanId };
    return { ...this.#ids, ...trace, ...fields };
  }
}

/** What is known of a refused request besides its failure. */
export interface RefusedRequest {
  /** The status of the response. */
  readonly status?: number;
  /** Milliseconds since 1970. */
  readonly begunAt?: number;
  /** The caller's trace. */
  readonly trace?: CallersTrace;
  /** Where it wants its telemetry. */
  readonly telemetry?: RunRequest["telemetry"];
}

/** A request was refused before its run began. */
export function notifyRefused(
  observers: readonly RunObserver[],
  failure: Failure,
  { trace = {}, ...facts }: RefusedRequest,
  log: Log,
): void {
  const { code, gaps = [] } = failure;
  const capabilities = [...new Set(gaps.map(({ capability }) => capability))];
  const span = callersSpan(trace);
  const refusal = { code, capabilities, ...facts, trace: span };
  notifyAll(observers, (observer) => observer.refused?.(refusal), log);
}

/** A server is up. @param state resolves with its present state. */
export function notifyServing(
  observers: readonly RunObserver[],
  state: () => Promise<RunnerState>,
  log: Log,
): void {
  notifyAll(observers, (observer) => observer.watch?.(state), log);
}

/** A run of a dead process was ended. @param recoveries what its observers had stored, by their names */
export function notifyLost(
  observers: readonly RunObserver[],
  run: Omit<LostRun, "recovery">,
  recoveries: Readonly<Record<string, string>>,
  log: Log,
): void {
  const ofOne = ({ name }: RunObserver) =>
    Object.hasOwn(recoveries, name) ? { ...run, recovery: recoveries[name] } : run;
  notifyAll(observers, (observer) => observer.lost?.(ofOne(observer)), log);
}

/** A webhook message of a run was posted, or couldn't be. */
export function notifyPosted(observers: readonly RunObserver[], attempt: WebhookAttempt, log: Log): void {
  notifyAll(observers, (observer) => observer.posted?.(attempt), log);
}

/** A run asked for an agent that was started ahead. */
export function notifyPrewarmed(observers: readonly RunObserver[], claim: PrewarmClaim, log: Log): void {
  notifyAll(observers, (observer) => observer.prewarmed?.(claim), log);
}

function notifyAll(
  observers: readonly RunObserver[],
  notify: (observer: RunObserver) => void,
  log: Log,
): void {
  for (const observer of observers) {
    try {
      inOffer(observer, () => notify(observer));
    } catch (error) {
      log.error({ observer: observer.name, error }, "an observer failed");
    }
  }
}

/** Closes each of them, within `limits.closeMs`. */
export async function closeActors(
  actors: readonly Pick<RunObserver, "name" | "close">[],
  { limits, log }: { readonly limits: Pick<RunLimits, "closeMs">; readonly log: Log },
): Promise<void> {
  const signal = AbortSignal.timeout(limits.closeMs);
  const timeIsUp = new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  const closing = actors.map(async (actor) => {
    try {
      await inOffer(actor, () => actor.close?.(signal));
    } catch (error) {
      log.error({ actor: actor.name, error }, "a plugin's actor could not be closed");
    }
  });
  await Promise.race([Promise.all(closing), timeIsUp]);
}
