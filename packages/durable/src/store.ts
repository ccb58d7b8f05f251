/** What a store of runs implements: for the authors of its plugin, and for those who use one. */

import { PluginBrokeContract } from "@ambit/core";
import type { RunOutcome } from "@ambit/core/contract";
import {
  type Backlog,
  type QuestionState,
  questionStates,
  type SessionUse,
  type StoreBackend,
} from "@ambit/core/plugin";
import { z } from "zod";

export { type RunOutcome, runOutcomeSchema } from "@ambit/core/contract";
export {
  advanceQuestion,
  type Backlog,
  type QuestionStep,
  questionStates,
  type SessionUse,
  statesBefore,
  stepAtLostRun,
} from "@ambit/core/plugin";

/** `queued`: accepted, not begun · `running`: a replica has it · `ended`: it has its one result. */
export const runStateSchema = z.enum(["queued", "running", "ended"]);
export type RunStateName = z.infer<typeof runStateSchema>;

export const interactionStateSchema = z.enum(questionStates);
export type InteractionState = QuestionState;

/** The state of a webhook's message. `pending`: the next attempt follows. `failed`: none does. */
export const deliveryStateSchema = z.enum(["pending", "delivered", "failed"]);
export type DeliveryState = z.infer<typeof deliveryStateSchema>;

/** Rows that belong to a project: every row names its project, so that a caller sees only its own. */
export interface OfProject {
  /** The row's project. Undefined: it belongs to none. */
  readonly project: string | undefined;
}

/** The receiver of a run's messages, which the log has too. */
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
  /** The message as JSON, redacted like every event. */
  readonly body: string;
}

export interface NewRun extends OfProject {
  /** The run's id. That of a run that a tenant began has the project: `project/id`. */
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
  /** The request without its secrets, for those who begin the run again, encrypted like a request. */
  readonly sealedCopy?: string;
  /** The run's first events, which are in the log as soon as it exists. Default: none. */
  readonly announced?: Omit<EventChunk, "first">;
}

/** What others need of a run to end it, if its replica is lost, or to continue it. */
export type StoredRecovery = Pick<NewRun, "trace" | "sealedRecovery" | "sealedCopy">;

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
  /** What another replica needs to report the run's end, encrypted. Undefined in lists. */
  readonly sealedRecovery: string | undefined;
  /** Undefined in lists, and where the run has none. */
  readonly sealedCopy: string | undefined;
  /** Events in the log: the last one's number, counted from 1. */
  readonly events: number;
  /** Characters of its events, and of the answers that it got after its end. */
  readonly size: number;
  readonly cancelRequested: boolean;
  readonly createdAt: number;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly openQuestions: number;
  /** The run's outcome. Undefined until it has ended. */
  readonly outcome: RunOutcome | undefined;
  /** The result in short, as JSON, which lists have too. Undefined until it has ended. */
  readonly summary: string | undefined;
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
  /** The bytes of their sealed requests. */
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

/** Days for which a store keeps what runs used, and that one answer has at most. */
export const tallyDays = 400;

export const tallyDimensions = ["day", "project", "harness", "model"] as const;
export type TallyDimension = (typeof tallyDimensions)[number];

export interface TallyQuery {
  /** Selects the runs of one project. Undefined: of every project; null: of no project. */
  readonly project?: string | null;
  /** The first day (UTC), such as `2026-11-29`. */
  readonly from: string;
  /** The last day (UTC), which is included. */
  readonly to: string;
  readonly by: TallyDimension;
}

/** What ended runs came to, and what they used. */
export interface Tally extends Readonly<Record<RunOutcome, number>> {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
  /** From the begin of each run to its end. */
  readonly sandboxMs: number;
}

export interface Tallies {
  /**
   * At most 1,000: the latest days, the newest first, or the groups with the most runs. A `key` is undefined for runs of no project,
   * or of an unknown model.
   */
  readonly groups: readonly (Tally & { readonly key: string | undefined })[];
  /** The sum of all runs of these days. */
  readonly total: Tally;
}

/** The progress of a run, which readers poll. */
export type RunHead = Pick<StoredRun, "id" | "state" | "fence" | "events">;

export interface RunQuery {
  /** Selects the runs of one project. Undefined: of every project; null: of no project. */
  readonly project?: string | null;
  readonly session?: string;
  readonly state?: RunStateName;
  readonly outcome?: RunOutcome;
  readonly harness?: string;
  readonly sandbox?: string;
  /** Only runs with open questions. Default: all. */
  readonly asking?: boolean;
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
  /** The cost of the run's models. Default 0. */
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** The model's name, at most 128 characters. Undefined: unknown. */
  readonly model?: string | undefined;
  /** The run's result as JSON, without its events. */
  readonly result: string;
  /** Questions of a paused run stay open for the next turn. */
  readonly outcome: RunOutcome;
  /** The result in short, as JSON: a few hundred characters. */
  readonly summary: string;
  /** The name of the session that the next turn continues. */
  readonly session: string | undefined;
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
  /** The question as JSON, redacted like every event. */
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
  readonly answeredAt: number | undefined;
  /** Who answered, and how, as `nameAnswerer` was told. */
  readonly answerer: string | undefined;
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
  /** Selects questions that are open, or have a waiting answer, or the outcome of a used one. */
  readonly holds?: true;
  /** Selects questions that are no older than this, by the store's clock. */
  readonly maxAgeMs?: number;
  /** Selects questions that were asked before the one with this id, for the next page. */
  readonly after?: string;
  readonly limit: number;
  /** Total characters of payloads; beyond that, entries are left out, but never the first. Default: no limit. */
  readonly maxCharacters?: number;
  /** The fields that aren't read, since they may be large: payloads are then empty, and answers undefined. Default: none. */
  readonly without?: readonly ("payload" | "answer")[];
}

export interface StoredSessionName extends OfProject {
  readonly session: string;
}

/** The replica and the sandbox that have a session. */
export interface SessionPlace extends StoredSessionName {
  readonly replica: string;
  readonly sandbox: string;
}

/** Fingerprints of the keys with which a replica protects what it stores. */
export interface ReplicaKeys {
  /** The fingerprint of the key that it encrypts with. */
  readonly newest: string;
  /** The fingerprints of all keys that it reads with, the newest included. */
  readonly readable: readonly string[];
  /** Whether it joins although stored content was encrypted with a key that is lost. */
  readonly mayLoseContent: boolean;
}

/** When another replica may have a session: while none of its runs is under way, or only once its owner is lost. */
export type TakeoverTime = "idle" | "owner_lost";

export type SessionHold =
  | {
      readonly held: true;
      /** Increases with each owner. */
      readonly fence: number;
      /** What `keepSession` last stored, by any owner. */
      readonly handover?: string;
      /** True if its last owner ended without closing it, and kept nothing. */
      readonly isAbandoned?: boolean;
    }
  /** Another replica has it; the address is that replica's. */
  | { readonly held: false; readonly address: string };

export interface StoredSession extends OfProject {
  readonly session: string;
  readonly sandbox: string;
  readonly replica: string;
  /** The address of that replica. */
  readonly address: string;
  readonly createdAt: number;
  readonly usedAt: number;
}

export interface Delivery extends NewDelivery, OfProject {
  readonly runId: string;
  readonly state: DeliveryState;
  /** Attempts so far, including one in progress. */
  readonly attempts: number;
  /** The attempts that were made before the message was last sent again on request. */
  readonly earlierAttempts: number;
  /** The HTTP status of the last attempt's answer. */
  readonly status: number | undefined;
  readonly error: string | undefined;
  readonly createdAt: number;
  /** When the next attempt may begin. */
  readonly dueAt: number;
}

export interface DeliveryQuery extends Omit<InteractionQuery, "state" | "session"> {
  readonly state?: DeliveryState;
}

export interface DeliveryOutcome {
  /** `pending`: another attempt follows. */
  readonly state: DeliveryState;
  /** Default 0: immediately. */
  readonly retryInMs?: number;
  readonly status?: number;
  readonly error?: string;
}

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
  /** Creates a run if its project's quota has room for a running run: no two replicas take the last place. */
  createWithin(run: NewRun, quota: RunQuota): Promise<StoredRun | "over_quota" | undefined>;
  /** Creates a queued run if the queue has room for it and its sealed request, which is ASCII. */
  createQueued(run: NewRun, limits: QueueLimits): Promise<StoredRun | "queue_full" | undefined>;
  /** One for each of these projects, in their order. */
  usage(projects: readonly string[]): Promise<readonly ProjectUsage[]>;
  /** What runs used that ended on these days, over all replicas. It is kept for 400 days, also of deleted runs. */
  tallies(query: TallyQuery): Promise<Tallies>;
  /** Makes this replica the owner of a queued run. Undefined when it isn't queued any more. */
  claim(id: string, replica: string): Promise<{ fence: number; sealedRequest: string } | undefined>;
  /** Keeps the recovery of a claimed run, which wasn't known when the run was created. Nothing happens to a run of another owner. */
  keepRecovery(id: string, fence: number, recovery: StoredRecovery): Promise<void>;
  /**
   * Queued runs that this replica should try to claim, the oldest first; none whose session a run has now, or `holdSession` would
   * leave to another replica.
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
  /** Keeps who has answered a question, and when, for those who look at it later. The first one stays. */
  nameAnswerer(id: string, answerer: string): Promise<void>;
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

/** Each method of a store: the compiler names one that is missing here. */
const methods: Readonly<Record<keyof Store, true>> = {
  create: true,
  createWithin: true,
  createQueued: true,
  usage: true,
  tallies: true,
  claim: true,
  keepRecovery: true,
  nextQueued: true,
  append: true,
  finish: true,
  get: true,
  list: true,
  heads: true,
  read: true,
  requestCancel: true,
  delete: true,
  retain: true,
  join: true,
  renew: true,
  drain: true,
  supersede: true,
  leave: true,
  abandoned: true,
  takeOver: true,
  interactions: true,
  answer: true,
  nameAnswerer: true,
  claimAnswer: true,
  settleAnswer: true,
  dropAnswer: true,
  expiring: true,
  expire: true,
  holdSession: true,
  keepSession: true,
  releaseSession: true,
  endSession: true,
  keepUse: true,
  sessions: true,
  takeDeliveries: true,
  settleDelivery: true,
  redeliver: true,
  deliveries: true,
  backlog: true,
  close: true,
};

/**
 * What a plugin's backend opened, as a store.
 *
 * @throws PluginBrokeContract where it lacks a method: the plugin is of another version.
 */
export function openedStore({ name }: StoreBackend, opened: unknown): Store {
  if (isStore(opened)) return opened;
  const fix = "install a version of its plugin that fits this Ambit";
  throw new PluginBrokeContract(`The store '${name}' lacks ${missingIn(opened).join(", ")}: ${fix}.`);
}

function isStore(opened: unknown): opened is Store {
  return missingIn(opened).length === 0;
}

function missingIn(opened: unknown): readonly string[] {
  const names = Object.keys(methods);
  if (typeof opened !== "object" || opened === null) return names;
  return names.filter((name) => typeof Reflect.get(opened, name) !== "function");
}
