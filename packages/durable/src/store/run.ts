import type { InteractionState, RunStateName } from "./states.js";

/** Rows that belong to a project: every row names its project, so that a caller sees only its own. */
export interface OfProject {
  /** Undefined: no project. */
  readonly project: string | undefined;
}

/** Where messages of a run are sent, in addition to its log. */
export interface RunWebhook {
  /** The receiver's address, encrypted with a key that isn't in the store. */
  readonly target: string;
  /** The host of that address. */
  readonly host: string;
  /** What is sent: `run.finished`. */
  readonly events: readonly string[];
}

/** One message to a receiver, written in the transaction of its event. */
export interface NewDelivery {
  /** The message's id, the same with each attempt. */
  readonly id: string;
  /** Copied from the run's webhook. */
  readonly target: string;
  readonly host: string;
  readonly event: string;
  /** As JSON; redacted like every event. */
  readonly body: string;
}

export interface NewRun extends OfProject {
  /** Of a run that a tenant began, with its project: `project/id`. */
  readonly id: string;
  readonly session: string | undefined;
  readonly state: "queued" | "running";
  /** The replica that accepted it; of a running one, its owner. */
  readonly replica: string;
  /** A keyed digest of the request's body. */
  readonly digest: string;
  readonly harness: string;
  readonly sandbox: string;
  /** The request, encrypted with a key that isn't in the store; only while the run is queued. */
  readonly sealedRequest?: string;
  readonly webhook?: RunWebhook;
  /** The `traceparent` of its span. */
  readonly trace?: string;
  /** What observers need of it if its replica is lost, encrypted like a request; only until it ends. */
  readonly sealedRecovery?: string;
  /** Its first events, which are in the log as soon as it exists. Default: none. */
  readonly announced?: Omit<EventChunk, "first">;
}

/** What others need of a run to end it, if its replica is lost, or to continue it. */
export type StoredRecovery = Pick<NewRun, "trace" | "sealedRecovery">;

/** Milliseconds since the epoch are the store's own: replicas' clocks differ. */
export interface StoredRun extends OfProject {
  readonly id: string;
  readonly session: string | undefined;
  readonly state: RunStateName;
  readonly replica: string;
  /** Increases with each owner: writes of an earlier owner are refused. */
  readonly fence: number;
  readonly digest: string;
  readonly harness: string;
  readonly sandbox: string;
  readonly webhook: RunWebhook | undefined;
  readonly trace: string | undefined;
  /** Undefined in lists. */
  readonly sealedRecovery: string | undefined;
  /** Events in the log: the last one's number, counted from 1. */
  readonly events: number;
  /** Characters of its events, and of the answers that it got after its end. */
  readonly size: number;
  readonly cancelRequested: boolean;
  readonly createdAt: number;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  /** The result as JSON, without events. Undefined until it has ended. */
  readonly result: string | undefined;
}

/** What a project may use, over all replicas. Absent: no limit. */
export interface RunQuota {
  /** Runs in progress. */
  readonly concurrentRuns?: number;
  /** Runs that begin within any 60 seconds. */
  readonly runsPerMinute?: number;
  /** Per day (UTC). The run that exceeds it isn't interrupted. */
  readonly usdPerDay?: number;
}

/** What may be queued, over all replicas. A project's runs may take no more than they leave free. */
export interface QueueLimits {
  readonly queuedRuns: number;
  /** Of their sealed requests. */
  readonly queuedBytes: number;
}

/** What a project has used, over all replicas. Runs are counted from its first one with a quota. */
export interface ProjectUsage {
  readonly project: string;
  readonly running: number;
  /** Runs that began within the last 60 seconds. */
  readonly begun: number;
  /** Milliseconds until the first of those runs is 60 seconds old. */
  readonly minuteLeftMs: number;
  /** Per day (UTC). */
  readonly usd: number;
  /** Milliseconds until that day ends. */
  readonly dayLeftMs: number;
}

/** The progress of a run, which readers poll. */
export type RunHead = Pick<StoredRun, "id" | "state" | "fence" | "events">;

export interface RunQuery {
  /** Only this project's; undefined: of every project; null: of none. */
  readonly project?: string | null;
  readonly session?: string;
  readonly state?: RunStateName;
  /** Only this run: what `get` returns, without its result. */
  readonly id?: string;
  /** Only runs created before the one with this id: the next page. */
  readonly after?: string;
  readonly limit: number;
}

/** Events that are committed together, and read together. */
export interface EventGroup {
  readonly runId: string;
  readonly fence: number;
  /** The number of the first one. Equal to the events in the log plus one. */
  readonly first: number;
  readonly count: number;
  /** Their stream records as NDJSON, just as they are sent. */
  readonly text: string;
  /** Questions that these events ask. */
  readonly asked?: readonly NewInteraction[];
  /** Ids of questions of the run that its agent took back: those that are open then are over. */
  readonly withdrawn?: readonly string[];
  readonly deliveries?: readonly NewDelivery[];
  /** Earlier events that the log drops: it keeps the latest only. `characters`: of all of them together. Default: none. */
  readonly dropped?: { readonly before: number; readonly characters: number };
}

export interface EventChunk {
  readonly first: number;
  readonly count: number;
  readonly text: string;
}

export interface RunEnd {
  /** What its models cost, in US dollars. Default 0. */
  readonly usd?: number;
  /** As JSON, without events. */
  readonly result: string;
  /** The name of the session that the next turn continues. */
  readonly session: string | undefined;
  /** Whether its questions stay open for the next turn. */
  readonly paused: boolean;
  /** The run's one message about its end. Added only with the end itself, so never a second one. */
  readonly delivery?: NewDelivery;
}

/** What is written when a question of an ended run expires. */
export interface Expiry {
  /** Two stream records, lines of NDJSON. The first gets the number that the result had: readers count records. */
  readonly text: string;
  readonly deliveries?: readonly NewDelivery[];
}

/** `fenced`: the run has another owner by now, or has ended. Nothing was written. */
export type Written = "written" | "fenced";

export interface NewInteraction {
  readonly id: string;
  readonly kind: string;
  /** As JSON; redacted like every event. */
  readonly payload: string;
}

export interface StoredInteraction extends OfProject {
  readonly id: string;
  readonly runId: string;
  /** The session in which the next turn may use the answer. */
  readonly session: string | undefined;
  readonly kind: string;
  readonly payload: string;
  readonly state: InteractionState;
  /**
   * The answer, until it is used, or the outcome that is kept of a used one. Encrypted by the replica that stored it.
   */
  readonly answer: string | undefined;
  readonly createdAt: number;
}

/** What became of an answer that a run has claimed. */
export type StoredSettlement =
  /** `outcome`: what its call came to, encrypted like an answer, which is ASCII. Default: nothing is kept. */
  { readonly step: "spend"; readonly outcome?: string | undefined } | { readonly step: "return" | "lose" };

export interface InteractionQuery {
  readonly id?: string;
  readonly project?: string | null;
  readonly state?: InteractionState;
  readonly runId?: string;
  readonly session?: string;
  /** Only those that are open, or have an answer that waits, or the outcome of a used one. */
  readonly holds?: true;
  /** Only questions that were asked since then, by the store's clock. */
  readonly maxAgeMs?: number;
  /** Only questions asked before the one with this id: the next page. */
  readonly after?: string;
  readonly limit: number;
  /** Total characters of payloads; beyond that, entries are left out, but never the first. Default: no limit. */
  readonly maxCharacters?: number;
  /** What isn't read, since it may be large: payloads are empty then, and answers undefined. Default: nothing. */
  readonly without?: readonly ("payload" | "answer")[];
}
