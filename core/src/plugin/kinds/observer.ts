import type { AgentEvent, Finding, RunRequest, RunResult, StageName } from "../../contract/index.js";
import type { CallersSpan, Log, RemoteSpan } from "../scope.js";
import type { ModelExchange } from "./model-gateway.js";
import type { Backlog } from "./store.js";

/**
 * Observes runs, for traces, metrics or an audit log. An observer doesn't act in runs, so it claims nothing and isn't planned.
 * Runs don't wait for it. An error that it throws is logged, and ends its observation of that run.
 */
export interface RunObserver {
  readonly name: string;
  /**
   * Called when a run was admitted. Returns undefined to ignore the run. A run that can't begin after all, because another
   * replica has its session, is `refused` without an `ended`. Synchronous.
   */
  observe(run: ObservedRun): RunObservation | undefined;
  /** Called when a request for a run was refused before the run began. Synchronous. */
  refused?(refusal: ObservedRefusal): void;
  /**
   * Called when this process ended a run as `runner_lost` whose own process had died, and with it the observation of the
   * run. Synchronous.
   */
  lost?(run: LostRun): void;
  /** Called when a message of a run's webhook was posted, or couldn't be. Synchronous. */
  posted?(attempt: WebhookAttempt): void;
  /** Called when a run asked for an agent that was started ahead. Synchronous. */
  prewarmed?(claim: PrewarmClaim): void;
  /** Called when a line was written to the log, by the observer itself too. Synchronous. */
  logged?(line: LogLine): void;
  /** Called once at most, when a server is up. `state` resolves with its present state. */
  watch?(state: () => Promise<RunnerState>): void;
  /** Returns metrics in the Prometheus text format (version 0.0.4), for `GET /metrics`. */
  scrape?(state: RunnerState): Promise<string>;
  /** Flushes what the observer still holds, until `signal` aborts. Called once, after the last run. */
  close?(signal: AbortSignal): Promise<void>;
}

export interface WebhookAttempt {
  /** The message's type, such as `run.finished`. */
  readonly event: string;
  /** `retried`: another attempt follows. */
  readonly outcome: "delivered" | "retried" | "failed";
}

export interface PrewarmClaim {
  readonly harness: string;
  /** `hit`: the run got an agent · `miss`: none fitted · `refused`: one fitted, but had acted since its start. */
  readonly outcome: "hit" | "miss" | "refused";
}

/** The runner's present state, apart from its runs. */
export interface RunnerState {
  /** Runs in progress. */
  readonly runs: number;
  /** Open sessions, including those in use. */
  readonly sessions: number;
  /** Processes in the runner's sandboxes. */
  readonly processes: number;
  /** Agents that were started ahead and wait for a run. */
  readonly prewarmed: number;
  /** Figures of the store, if one is open and responds. */
  readonly backlog?: Backlog;
  /** Actors with evidence that is still valid. */
  readonly probes: readonly {
    readonly kind: string;
    readonly actor: string;
    readonly ageMs: number;
    readonly findings: readonly Finding[];
  }[];
}

/** One line of the log, redacted as it was written. */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly message: string;
  /** JSON values. Lines about a run have `runId`, and also `traceId` and `spanId` if the run has a trace. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface ObservedRun {
  readonly runId: string;
  /** The parsed request, including its credentials. */
  readonly request: RunRequest;
  /** The caller's span, which is the parent of the run's. */
  readonly parent?: RemoteSpan;
  /** The harness's id, the sandbox's name, and the sandbox's guarantees, by the run's plan. */
  readonly harness: string;
  readonly sandbox: string;
  readonly guarantees: readonly string[];
  /** The model, by its provider's name for it; absent if the agent chooses it. */
  readonly model?: string;
  /** Redacts the run's credentials in a text of the request, as the runner does in events. */
  redact(text: string): string;
  readonly log: Log;
}

export interface LostRun extends Pick<ObservedRun, "runId" | "harness" | "sandbox"> {
  /** Milliseconds since 1970. */
  readonly begunAt: number;
  /** The value that this observer's observation of the run returned from `recovery`. */
  readonly recovery?: string | undefined;
}

export interface ObservedRefusal {
  /** The failure's code in the API: `boundary_refused`. */
  readonly code: string;
  /** The HTTP status of the response; absent for a queued run. */
  readonly status?: number;
  /** Milliseconds since 1970 at which the request arrived. Default: now. */
  readonly begunAt?: number;
  /** The caller's trace, from the headers or the body. Absent for a caller who isn't known. */
  readonly trace?: CallersSpan;
  /** Where the request wants its telemetry sent. Absent if the request couldn't be read, or its caller isn't known. */
  readonly telemetry?: RunRequest["telemetry"];
  /** The capabilities that some actor can't guarantee; empty for other refusals. */
  readonly capabilities: readonly string[];
}

export interface TracedCall {
  /** The call's id in the run's events. */
  readonly id: string;
  /** The tool's name. */
  readonly name: string;
}

/** Receives the events of one run, in order. All calls are synchronous. */
export interface RunObservation {
  /** The id of the run's trace: 32 hexadecimal digits. Default: that of the caller's `traceparent`. */
  readonly traceId?: string;
  /**
   * Returns the `traceparent` (W3C Trace Context) to pass on with the run's current requests, or with one tool call.
   * Default: the caller's.
   */
  traceparent?(call?: TracedCall): string | undefined;
  /**
   * Returns what another process needs to report the end of this run if this process dies: `lost` receives it. At most
   * 16,384 characters, which are stored encrypted. Called once, before the run begins.
   */
  recovery?(): string | undefined;
  /** Called if the run answers questions of an earlier run that had paused, with the span of that run. */
  resumed?(span: RemoteSpan): void;
  /** Called when a tool call continues under another id. A result that only says so may follow under the earlier id. */
  callRenamed?(from: string, to: string): void;
  /** Called when a stage begins, and the one before it ends. */
  entered?(stage: StageName): void;
  /** Called for each event, redacted as the run's reader receives it. */
  happened?(event: AgentEvent): void;
  /** Called when the agent sends a request to its model through a gateway. */
  modelCalled?(model: string): ModelExchange | undefined;
  /** Called last, with the run's one result, redacted. */
  ended?(result: RunResult): void;
}
