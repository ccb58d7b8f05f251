import type { AmbitError, AtCapacity, RunCancelled } from "@ambit/core";
import type { AgentEvent, RunRequest, RunResult } from "@ambit/core/contract";

/** A run as it is recorded. The runner's `Run` is one. */
export interface RecordedRun {
  readonly id: string;
  readonly request: RunRequest;
  readonly plan: {
    readonly harness: { readonly actor: { readonly id: string } };
    readonly sandbox: { readonly actor: { readonly name: string } };
  };
  /** Resolves when everything the run opened is closed, with its failure if there was one. */
  readonly ended: Promise<AmbitError | undefined>;
  /** Starts it: yields its events in groups, then its one result. */
  parts(): AsyncIterable<{ readonly events: readonly AgentEvent[] } | { readonly result: RunResult }>;
  cancel(reason: RunCancelled | AtCapacity): void;
  /** A live answer. @throws NotFound, RequestInvalid */
  answer(interactionId: string, body: unknown): void;
}
