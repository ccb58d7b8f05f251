import type { AmbitError, AtCapacity, RunCancelled } from "@ambit/core";
import { type EventRecord, projectOf, type RunRequest, type RunResult } from "@ambit/core/contract";
import type { Log } from "@ambit/core/plugin";
import type { Sealing } from "../sealing.js";
import type { NewRun } from "../store/index.js";
import { sealedWebhook } from "../webhooks/messages.js";

/** What a recorded run knows of its right to act: another replica may take it over. */
export interface LeasedHold {
  /** Increases with each owner of the run. */
  readonly fence: number;
  /** Whether the run is certainly still this replica's. */
  readonly isCurrent: boolean;
  /** Resolves once it is: immediately, or after the lease's next renewal. @throws the signal's reason */
  confirmed(signal: AbortSignal): Promise<void>;
}

/** A run as it is recorded. The runner's `Run` is one. */
export interface RecordedRun {
  /** As its caller knows it. */
  readonly id: string;
  /** Its id in the store, where runs of all callers are. */
  readonly key: string;
  readonly request: RunRequest;
  readonly plan: {
    readonly harness: { readonly actor: { readonly id: string } };
    readonly sandbox: { readonly actor: { readonly name: string } };
  };
  /** What is stored for those who end it, if this process dies, or continue it. */
  readonly recovery: {
    readonly trace?: string;
    /** By observer. */
    readonly recoveries: Readonly<Record<string, string>>;
  };
  /** Names the run, and its trace, in each line. */
  readonly log: Log;
  /** Resolves when everything the run opened is closed, with its failure if there was one. */
  readonly ended: Promise<AmbitError | undefined>;
  /** Its first events, which are there before it starts. Taken here, they aren't yielded again. */
  announced(): readonly EventRecord[];
  /** Called before it starts: it acts only while the hold is current. */
  holdBy(hold: LeasedHold): void;
  /**
   * Starts it: yields its events in groups, then its one result. After a group of at least `events`, the next one gathers
   * for `timeoutMs`, or until it has `characters`. What waits is bounded: then the run waits.
   */
  parts(gathering: {
    readonly events: number;
    readonly characters: number;
    readonly timeoutMs: number;
  }): AsyncIterable<{ readonly records: readonly EventRecord[] } | { readonly result: RunResult }>;
  /** Ends it before it starts. */
  withdraw(): void;
  cancel(reason: RunCancelled | AtCapacity): void;
  /** A live answer. @throws NotFound, RequestInvalid */
  answer(interactionId: string, body: unknown): void;
}

/** Records as NDJSON. Joined at once: otherwise V8 would keep each line until the text is written. */
export function textOf(records: readonly EventRecord[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join("");
}

/** What a run says of itself before it starts, to be stored with it. */
export function announcedBy(run: RecordedRun): Pick<NewRun, "announced"> {
  const records = run.announced();
  return records.length === 0 ? {} : { announced: { count: records.length, text: textOf(records) } };
}

/** What a run's request and plan say, to be stored with it. @param sealing of its webhook's address */
export function describedBy(
  { key, request, plan }: Pick<RecordedRun, "key" | "request" | "plan">,
  sealing: Sealing,
): Pick<NewRun, "id" | "project" | "session" | "harness" | "sandbox" | "webhook"> {
  return {
    id: key,
    project: projectOf(request),
    session: request.sessionId,
    harness: plan.harness.actor.id,
    sandbox: plan.sandbox.actor.name,
    webhook: sealedWebhook(request, key, sealing),
  };
}

/** @param sealing undefined where no other process could end the run */
export function recoveryOf(
  { key, recovery: { trace, recoveries } }: RecordedRun,
  sealing: Sealing | undefined,
): Pick<NewRun, "trace" | "sealedRecovery"> {
  const isNeeded = Object.keys(recoveries).length > 0;
  return {
    trace,
    ...(isNeeded && sealing !== undefined ? { sealedRecovery: sealing.seal(key, recoveries) } : {}),
  };
}
