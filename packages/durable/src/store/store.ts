import type { Backlog, SessionUse } from "@ambit/core/plugin";
import type {
  EventChunk,
  EventGroup,
  Expiry,
  InteractionQuery,
  NewRun,
  ProjectUsage,
  QueueLimits,
  RunEnd,
  RunHead,
  RunQuery,
  RunQuota,
  StoredInteraction,
  StoredRecovery,
  StoredRun,
  StoredSettlement,
  Written,
} from "./run.js";
import type {
  Delivery,
  DeliveryOutcome,
  DeliveryQuery,
  ReplicaKeys,
  SessionHold,
  SessionPlace,
  StoredSession,
  StoredSessionName,
  TakeoverTime,
} from "./shared.js";

/** What a replica holds a lease on, as the store knows it. */
export interface HeldRun {
  readonly id: string;
  readonly fence: number;
  readonly cancelRequested: boolean;
}

/** An answer that another replica received. */
export interface ArrivedAnswer {
  readonly runId: string;
  readonly interactionId: string;
  readonly answer: string;
}

export interface Renewal {
  /** Every run of this replica that hasn't ended. A run that is missing here was taken over by another replica. */
  readonly runs: readonly HeldRun[];
  readonly answers: readonly ArrivedAnswer[];
}

/** How long ended runs are kept. */
export interface Retention {
  readonly maxAgeMs: number;
  /** Characters of all events and results; the oldest go first. */
  readonly maxSize: number;
  /** Whether the oldest go first of the project that holds the most, which takes a look at all ended runs. Default false. */
  readonly isFair?: boolean;
  /** A run is kept while a question of it is open, and this long after it asked one that is answered, but not used. */
  readonly interactionMs: number;
}

export interface Retained {
  /** Runs. */
  readonly deleted: number;
  /** Characters beyond the size, of runs that are kept for their questions. */
  readonly excess: number;
}

/**
 * An open store. All times are the store's own clock. Every method rejects while the store can't be reached, and is
 * idempotent: the caller may repeat it, since it may have succeeded although its response was lost.
 */
export interface Store {
  /** @returns the run that already has this id, and nothing is written; undefined when it was created. */
  create(run: NewRun): Promise<StoredRun | undefined>;
  /** The same, if its project's quota has room for a running run: no two replicas take the last place. */
  createWithin(run: NewRun, quota: RunQuota): Promise<StoredRun | "over_quota" | undefined>;
  /** The same for a queued run, if the queue has room for it and its sealed request, which is ASCII. */
  createQueued(run: NewRun, limits: QueueLimits): Promise<StoredRun | "queue_full" | undefined>;
  /** One for each of these projects, in their order. */
  usage(projects: readonly string[]): Promise<readonly ProjectUsage[]>;
  /** Makes this replica the owner of a queued run. Undefined when it isn't queued any more. */
  claim(id: string, replica: string): Promise<{ fence: number; sealedRequest: string } | undefined>;
  /** Of a claimed run: it wasn't known when the run was created. Nothing happens to a run of another owner. */
  keepRecovery(id: string, fence: number, recovery: StoredRecovery): Promise<void>;
  /**
   * Queued runs that this replica should try to claim, the oldest first; none whose session `holdSession` would leave to another one.
   * @param except projects whose runs stay queued for now; `null` is that of runs without a project.
   */
  nextQueued(replica: string, limit: number, except?: readonly (string | null)[]): Promise<readonly string[]>;
  /** Atomic. The same group a second time adds nothing, and is `written`. */
  append(group: EventGroup): Promise<Written>;
  /**
   * The run's one end, with its one message. A second end with the same fence changes and adds nothing, and is `written`,
   * even one that began before the first was committed.
   */
  finish(id: string, fence: number, end: RunEnd): Promise<Written>;
  get(id: string): Promise<StoredRun | undefined>;
  /** The newest first, without their results. */
  list(query: RunQuery): Promise<readonly StoredRun[]>;
  heads(ids: readonly string[]): Promise<readonly RunHead[]>;
  /** Events after that number, in order: at least one chunk if there is one, then up to `maxCharacters`. */
  read(id: string, after: number, maxCharacters: number): Promise<readonly EventChunk[]>;
  /** Asks the owner to end it. False when there is no such run, or it has ended. */
  requestCancel(id: string): Promise<boolean>;
  /** Deletes an ended run with its events and questions. False when there is none. */
  delete(id: string): Promise<boolean>;
  /** Deletes ended runs that are too old or exceed the size. */
  retain(retention: Retention): Promise<Retained>;

  /**
   * Lets a replica join whose key the others can read, and that can read theirs and what is stored. Called before its first
   * renewal, and takes its lease.
   * @returns `other_replica`: a living replica encrypts with a key that this one can't read, or can't read this one's ·
   * `other_content`: something is stored that was encrypted with a key that this one can't read. Then nothing has changed.
   */
  join(
    replica: string,
    address: string,
    leaseMs: number,
    keys: ReplicaKeys,
  ): Promise<"joined" | "other_replica" | "other_content">;
  /** Renews this replica's lease, for `leaseMs` from now. */
  renew(replica: string, address: string, leaseMs: number): Promise<Renewal>;
  /** This replica takes no more runs, and ends those that it has: a later process in its place leaves it its lease. */
  drain(replica: string): Promise<void>;
  /** Ends the leases of other replicas whose ids begin so, and that don't drain: earlier processes in this one's place. */
  supersede(prefix: string, replica: string): Promise<void>;
  /** This replica shuts down: what it still holds is released immediately. */
  leave(replica: string): Promise<void>;
  /** Runs whose owner's lease has expired. */
  abandoned(): Promise<readonly StoredRun[]>;
  /** Takes such a run over. @returns the new fence; undefined when the owner is alive, or another replica was first. */
  takeOver(id: string, fence: number, replica: string): Promise<number | undefined>;

  interactions(query: InteractionQuery): Promise<readonly StoredInteraction[]>;
  /**
   * Keeps a user's answer to an open question, which is ASCII. @returns the question as it is now; undefined where there is none.
   * @param maxCharacters of all answers to the run's questions that no turn has used; beyond that, it stays open.
   */
  answer(id: string, answer: string, maxCharacters: number): Promise<StoredInteraction | undefined>;
  /**
   * A running run is about to use an answer. False if any run used it before, or its question has expired. It may have been
   * in a request: then there is no question with an answer here, or none at all.
   */
  claimAnswer(id: string, run: string): Promise<boolean>;
  /**
   * What became of an answer that this run has claimed. Where the run ends without it, an approval's outcome is `unknown`, and
   * any other answer waits again.
   */
  settleAnswer(id: string, run: string, settlement: StoredSettlement): Promise<void>;
  /** Drops what is kept of a question that no run has claimed: nothing can be done with its answer any more. */
  dropAnswer(id: string): Promise<void>;
  /**
   * Open questions of ended runs that are older than that, the oldest first, at most 100.
   * @param maxCharacters of payloads; beyond that, entries are left out, but never the first.
   */
  expiring(maxAgeMs: number, maxCharacters: number): Promise<readonly StoredInteraction[]>;
  /** Ends an open question of an ended run, and adds the event to the run's log. False when another was first. */
  expire(question: StoredInteraction, expiry: Expiry): Promise<boolean>;

  /**
   * Binds a session to the replica that has its sandbox. Where another living one has it, only if `keepSession` kept
   * something, and no run of the session is under way there.
   * @param maxOpen of its project's open sessions, itself included, on all replicas. Default: no limit.
   */
  holdSession(place: SessionPlace, maxOpen?: number): Promise<SessionHold | "over_quota">;
  /**
   * Keeps what the next owner takes the session over with, sealed by its present one. Undefined: nothing any more.
   * @param when another one may have it. Default: `idle`.
   */
  keepSession(
    place: SessionPlace,
    fence: number,
    handover: string | undefined,
    when?: TakeoverTime,
  ): Promise<Written>;
  /** The session has no owner any more. @param handover for the next one, sealed. Default: nothing is left of it. */
  releaseSession(place: SessionPlace, handover?: string): Promise<void>;
  /** Ends a session whose owner's lease is over. @returns a higher fence and what was kept; undefined: there is none. */
  endSession(
    of: StoredSessionName,
  ): Promise<{ readonly fence: number; readonly handover?: string } | undefined>;
  /** Keeps the larger of each figure, for a day after the last use. @returns what is kept now. */
  keepUse(of: StoredSessionName, use: SessionUse): Promise<SessionUse>;
  sessions(query: {
    readonly project?: string | null;
    readonly limit: number;
  }): Promise<readonly StoredSession[]>;

  /** Deliveries that are due, the oldest first, reserved for this caller; none to the excluded hosts or projects. */
  takeDeliveries(
    limit: number,
    reserveMs: number,
    except?: { readonly hosts: readonly string[]; readonly projects: readonly string[] },
  ): Promise<readonly Delivery[]>;
  /** @param attempt its number. The outcome of an earlier one than the last counts only when it was delivered. */
  settleDelivery(id: string, attempt: number, outcome: DeliveryOutcome): Promise<void>;
  /** Makes a message due again immediately, whatever its state. @returns it as it is now; undefined where there is none. */
  redeliver(id: string, project?: string | null): Promise<Delivery | undefined>;
  /** The newest first, without the texts of their messages. */
  deliveries(query: DeliveryQuery): Promise<readonly Delivery[]>;

  /** What waits, over all replicas. @param project only its own; null: of none. */
  backlog(project?: string | null): Promise<Backlog>;

  close(): Promise<void>;
}
