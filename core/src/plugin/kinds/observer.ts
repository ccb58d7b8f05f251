import type { AgentEvent, Finding, RunRequest, RunResult, StageName } from "../../contract/index.js";
import type { CallersSpan, Log, RemoteSpan } from "../scope.js";
import type { ModelExchange } from "./model-gateway.js";
import type { Backlog } from "./store.js";

/**
 * Observes runs, for traces, metrics or an audit log. It doesn't act in them, so it claims nothing and isn't planned.
 * The run doesn't wait for it. An error that it throws is logged, and ends its observation of that run.
 */
export interface RunObserver {
  readonly name: string;
  /**
   * A run was admitted. Undefined: it doesn't observe this one. A run that can't begin after all, because another replica
   * has its session, is `refused` without an `ended`. Synchronous.
   */
  observe(run: ObservedRun): RunObservation | undefined;
  /** A request for a run was refused before the run began. Synchronous. */
  refused?(refusal: ObservedRefusal): void;
  /**
   * A run of another process, which has died, was ended here as `runner_lost`. That process's observations of it are
   * lost. Synchronous.
   */
  lost?(run: LostRun): void;
  /** A message of a run's webhook was posted, or couldn't be. Synchronous. */
  posted?(attempt: WebhookAttempt): void;
  /** A run asked for an agent that was started ahead. Synchronous. */
  prewarmed?(claim: PrewarmClaim): void;
  /** A line was written to the log. Synchronous. What it writes to the log itself arrives here, too. */
  logged?(line: LogLine): void;
  /** A server is up: `state` resolves with its present state whenever it is called. Called once at most. */
  watch?(state: () => Promise<RunnerState>): void;
  /** Its metrics in the Prometheus text format (version 0.0.4), for `GET /metrics`. */
  scrape?(state: RunnerState): Promise<string>;
  /** Flushes what it still holds, until `signal` aborts. Called once, after the last run. */
  close?(signal: AbortSignal): Promise<void>;
}

export interface WebhookAttempt {
  /** `run.finished` */
  readonly event: string;
  /** `retried`: another attempt follows. */
  readonly outcome: "delivered" | "retried" | "failed";
}

export interface PrewarmClaim {
  readonly harness: string;
  /** `hit`: it got one · `miss`: none fitted · `refused`: one fitted, but had done something since its start. */
  readonly outcome: "hit" | "miss" | "refused";
}

/** The runner's present state, apart from its runs. */
export interface RunnerState {
  /** Runs in progress. */
  readonly runs: number;
  /** Open sessions, including those in use. */
  readonly sessions: number;
  /** Processes in its sandboxes. */
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

/** One line of the log, as it was written: redacted. */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly message: string;
  /** JSON values. A run's lines have `runId`, and `traceId` and `spanId` where the run has a trace. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface ObservedRun {
  readonly runId: string;
  /** As it was parsed, including its credentials. */
  readonly request: RunRequest;
  /** The caller's span, which the run continues. */
  readonly parent?: RemoteSpan;
  /** Id of the harness, name of the sandbox, and what the sandbox guarantees, as planned. */
  readonly harness: string;
  readonly sandbox: string;
  readonly guarantees: readonly string[];
  /** The model, as its provider knows it; absent where the agent chooses it. */
  readonly model?: string;
  /** Redacts the run's credentials in a text of the request, as in events. */
  redact(text: string): string;
  readonly log: Log;
}

export interface LostRun extends Pick<ObservedRun, "runId" | "harness" | "sandbox"> {
  /** Milliseconds since 1970. */
  readonly begunAt: number;
  /** What this observer's observation of it returned from `recovery`. */
  readonly recovery?: string | undefined;
}

export interface ObservedRefusal {
  /** The failure's code, as on the wire: `boundary_refused`. */
  readonly code: string;
  /** The HTTP status of the response; absent for a queued run. */
  readonly status?: number;
  /** Milliseconds since 1970 at which the request arrived. Default: now. */
  readonly begunAt?: number;
  /** The caller's trace, from the headers or the body. Absent for a caller who isn't known. */
  readonly trace?: CallersSpan;
  /** Where the request wants its telemetry. Absent for one that couldn't be read, or whose caller isn't known. */
  readonly telemetry?: RunRequest["telemetry"];
  /** Capabilities that some actor can't guarantee; empty for other refusals. */
  readonly capabilities: readonly string[];
}

export interface TracedCall {
  /** As in its events. */
  readonly id: string;
  /** Of its tool. */
  readonly name: string;
}

/** Receives the events of one run, in order. All calls are synchronous. */
export interface RunObservation {
  /** The trace that the run belongs to: 32 hexadecimal digits. Default: that of the caller's `traceparent`. */
  readonly traceId?: string;
  /**
   * The `traceparent` (W3C Trace Context) to pass on with the run's current requests, or with one tool call.
   * Default: the caller's.
   */
  traceparent?(call?: TracedCall): string | undefined;
  /**
   * What another process needs to report the end of this run if this process dies: `lost` gets it. At most 16,384
   * characters, which are stored encrypted. Called once, before the run begins.
   */
  recovery?(): string | undefined;
  /** The run answers questions of an earlier run that had paused: the span of that run. */
  resumed?(span: RemoteSpan): void;
  /** A tool call continues under another id. A result may follow that only says so, under the earlier one. */
  callRenamed?(from: string, to: string): void;
  /** A stage begins, and the one before it ends. */
  entered?(stage: StageName): void;
  /** Redacted, as the run's reader receives it. */
  happened?(event: AgentEvent): void;
  /** The agent sends a request to its model through a gateway. */
  modelCalled?(model: string): ModelExchange | undefined;
  /** The run's one result, redacted. The last call. */
  ended?(result: RunResult): void;
}
