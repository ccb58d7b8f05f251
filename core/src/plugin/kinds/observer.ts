import type { AgentEvent, Finding, RunRequest, RunResult } from "../../contract/index.js";
import type { Log } from "../log.js";
import type { ModelExchange } from "./model-gateway.js";

/**
 * Watches runs: for traces, metrics, an audit log. It acts in none, so it claims nothing and is never planned. The run
 * doesn't wait for it; what it throws is logged once for each run, and ends its observation of that run.
 */
export interface RunObserver {
  readonly name: string;
  /** A run was admitted. Undefined: it doesn't watch this one. Synchronous. */
  observe(run: ObservedRun): RunObservation | undefined;
  /** A request was refused before it became a run. Synchronous. */
  refused?(refusal: ObservedRefusal): void;
  /** Its figures, in the Prometheus text format (version 0.0.4), for `GET /metrics`. */
  scrape?(state: RunnerState): Promise<string>;
  /** Sends what it still has, until `signal` aborts. Called once, when no run is left. */
  close?(signal: AbortSignal): Promise<void>;
}

/** What is so at this moment, and in no run. */
export interface RunnerState {
  /** Runs under way. */
  readonly runs: number;
  /** Open sessions, those of runs under way included. */
  readonly sessions: number;
  /** Of the actors whose evidence may still be used. */
  readonly probes: readonly {
    readonly kind: string;
    readonly actor: string;
    readonly ageMs: number;
    readonly findings: readonly Finding[];
  }[];
}

export interface ObservedRun {
  readonly runId: string;
  /** As it was parsed, its credentials included. */
  readonly request: RunRequest;
  /** Id of the harness, name of the sandbox, and what the sandbox guarantees, as planned. */
  readonly harness: string;
  readonly sandbox: string;
  readonly guarantees: readonly string[];
  /** Replaces the run's credentials in a text of the request, as it is done in events. */
  redact(text: string): string;
  readonly log: Log;
}

export interface ObservedRefusal {
  /** The failure's code, as on the wire: `boundary_refused`. */
  readonly code: string;
  /** Capabilities that some actor can't guarantee; empty for other refusals. */
  readonly capabilities: readonly string[];
}

/** The stops of a run that take time: opening the sandbox, starting the agent, its turn, closing. */
export type ObservedStage = "opening" | "starting" | "streaming" | "closing";

/** What is told of one run, in the order in which it happens. All calls are synchronous. */
export interface RunObservation {
  /** The trace that the run belongs to: 32 hexadecimal digits. Default: that of the caller's `traceparent`. */
  readonly traceId?: string;
  /**
   * The `traceparent` (W3C Trace Context) to send on with what the run does now, or with one tool call.
   * Default: the caller's.
   */
  traceparent?(callId?: string): string | undefined;
  /** A stage begins, and the one before it ends. */
  entered?(stage: ObservedStage): void;
  /** Redacted, as the run's reader gets it. */
  happened?(event: AgentEvent): void;
  /** The agent sends a request to its model through a gateway. */
  modelCalled?(model: string): ModelExchange | undefined;
  /** The run's one result, redacted. Nothing comes after it. */
  ended?(result: RunResult): void;
}
