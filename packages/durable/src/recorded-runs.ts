import { messageOf, NotFound, RunCancelled, StoreFailed } from "@ambit/core";
import { idOfRun } from "@ambit/core/contract";
import { BoundSessions, keyOf } from "./bound-sessions.js";
import { endedBy, Lease, LeftOvers, newReplica, placePrefix, stopMs } from "./lease.js";
import { answering, askStore, retryWhileDown } from "./outage.js";
import {
  announcedBy,
  describedBy,
  type LeasedHold,
  type RecordedRun,
  Recorder,
  recoveryOf,
  takenOver,
} from "./recorder.js";
import { Retaining } from "./retaining.js";
import { type Records, RemoteProgress, RunLogs, requireKept } from "./run-log.js";
import { type MemorySettings, type StoreSettings, storeSettingsSchema } from "./settings.js";
import type {
  NewRun,
  Renewal,
  RunQuota,
  Store,
  StoredRun,
  StoredSession,
  StoredSessionName,
} from "./store.js";
import { StoredAnswers } from "./stored-answers.js";
import { Deliveries, type DeliveriesOptions } from "./webhooks.js";

export interface RecordedRunsOptions extends Omit<DeliveriesOptions, "store"> {
  readonly settings: StoreSettings;
  /** The address at which callers reach this replica: `http://10.0.0.5:8765`. Empty for one that serves only its own process. */
  readonly address: string;
  /** The address on which this process listens, which no other process of this host can have too. Undefined: it doesn't listen. */
  readonly place: string | undefined;
  /** Whether to begin although stored content was encrypted with a key that is lost. Default: false. */
  readonly mayLoseContent?: boolean;
  /** The named sessions that are open here. */
  readonly openSessions: () => readonly StoredSessionName[];
  /** Called when a run of a lost replica was ended here, as `runner_lost`. */
  readonly onLost: (run: StoredRun) => void;
  /** Ends the sandboxes. Called when the runs are ended, since other replicas will soon take this one's runs and sessions. */
  readonly onLapse: () => void;
}

/** The opened store of the runs. */
interface OpenedStore {
  readonly store: Store;
  /** Whether it outlives this process, and other replicas may have it too. */
  readonly isShared: boolean;
}

/** Replicas couldn't read what others have encrypted. The message says what to set. */
export class OtherKey extends Error {
  override readonly name = "OtherKey";
}

/** What to do with a run that was admitted under an id that the store already has. */
export type StartedRun = { readonly recorder: Recorder } | { readonly existing: StoredRun };

/** The runs of this replica, recorded, and those of all replicas, as the store has them. */
export class RecordedRuns {
  readonly replica: string;
  readonly #recorders = new Map<string, Recorder>();
  readonly #leftOvers: LeftOvers;
  readonly sessions: BoundSessions;
  readonly answers: StoredAnswers;
  readonly lease: Lease;
  readonly #retaining: Retaining;
  readonly deliveries: Deliveries;

  /** The store for requests of callers: it answers in time, or rejects with StoreFailed. */
  readonly store: Store;
  readonly #logs: RunLogs;

  private constructor(readonly options: RecordedRunsOptions & OpenedStore) {
    const { store, settings, address, log, place, isShared } = options;
    this.#logs = new RunLogs(
      { store, settings, log, keepsLatest: !isShared },
      new RemoteProgress(store, log),
    );
    this.store = answering(store, settings.answerTimeoutMs, log);
    this.replica = newReplica(place);
    this.deliveries = new Deliveries(options);
    this.#retaining = new Retaining(options);
    this.answers = new StoredAnswers(options, this.store);
    this.sessions = new BoundSessions(
      { ...options, answeringStore: this.store, requireLease: () => this.#requireLease() },
      this.replica,
    );
    this.#leftOvers = new LeftOvers(options, (id) => this.#recorders.has(id));
    this.lease = new Lease({
      store,
      address,
      log,
      replica: this.replica,
      leaseMs: settings.leaseMs,
      onLost: options.onLost,
      whileHandled: (id, act) => this.whileHandled(id, act),
      isBusy: () => this.#recorders.size > 0,
      onRenewal: (renewal, isSure) => this.#renewed(renewal, isSure),
      onLapse: () => this.#lapsed(),
    });
  }

  /** Runs in a store. Takes this replica's lease. @throws Error when the store can't be reached. */
  static open(options: RecordedRunsOptions & { readonly store: Store }): Promise<RecordedRuns> {
    return RecordedRuns.#open({ ...options, isShared: true });
  }

  /** Runs in a store that ends with this process. */
  static openInMemory(
    options: Omit<RecordedRunsOptions, "settings"> & {
      readonly settings: MemorySettings;
      readonly store: Store;
    },
  ): Promise<RecordedRuns> {
    const { maxAgeMs, maxMiB, runMiB, queuedRuns } = options.settings;
    const limits = { maxAgeMs, maxMiB, runMiB, queuedRuns, interactionMs: maxAgeMs };
    const settings = storeSettingsSchema.parse(limits);
    return RecordedRuns.#open({ ...options, settings, isShared: false });
  }

  static async #open(options: RecordedRunsOptions & OpenedStore): Promise<RecordedRuns> {
    const runs = new RecordedRuns(options);
    const { place, store } = options;
    // The process that listened here before has ended unless it announced that it drains: two can't listen at once.
    if (place !== undefined) await store.supersede(placePrefix(place), runs.replica);
    await runs.#join();
    await runs.lease.take();
    runs.#retaining.start();
    runs.deliveries.start();
    return runs;
  }

  /** @throws OtherKey */
  async #join(): Promise<void> {
    const { store, settings, address, sealing, mayLoseContent = false } = this.options;
    const leaseMs = settings.leaseMs + stopMs(settings.leaseMs);
    const keys = { ...sealing.fingerprints, mayLoseContent };
    const joined = await store.join(this.replica, address, leaseMs, keys);
    if (joined === "joined") return;
    throw new OtherKey(
      joined === "other_replica"
        ? "another server on this store has another interactions key: give all of them the same interactions.keyFile, or name each other's key in interactions.otherKeyFiles while you change it"
        : 'the store has queued runs, answers, webhooks or sessions that were encrypted with another interactions key: set interactions.keyFile to the file that the servers had before, or name that in interactions.otherKeyFiles; if it is lost, set interactions.onLostKey to "continue" for one start: then these are lost',
    );
  }

  /** Asks the store on behalf of a caller, who gets an error if it can't be reached. @throws StoreFailed */
  asking<Result>(ask: () => Promise<Result>): Promise<Result> {
    const { settings, log } = this.options;
    return askStore(settings.answerTimeoutMs, log, ask);
  }

  /**
   * Creates the run in the store, and starts it, unless the store has one with its id.
   * @param signal of the caller who waits for it. @throws StoreFailed
   */
  start(
    run: RecordedRun,
    digest: string,
    quota?: RunQuota,
    signal?: AbortSignal,
  ): Promise<StartedRun | "over_quota"> {
    return this.whileHandled(run.key, async () => {
      const { settings, log, store, sealing, isShared } = this.options;
      await this.#requireLease(signal);
      const more = { ...announcedBy(run), ...recoveryOf(run, sealing, isShared) };
      const created = { ...this.newRun(run, digest), ...more, state: "running" as const };
      const create = () => (quota === undefined ? store.create(created) : store.createWithin(created, quota));
      const existing = await retryWhileDown("create a run", settings.retryTimeoutMs, log, create, signal);
      if (existing === "over_quota") return existing;
      // Created by an earlier attempt of this replica whose response was lost.
      const isOurs = existing?.replica === this.replica && existing.state === "running";
      if (existing !== undefined && !(isOurs && !this.#recorders.has(run.key))) return { existing };
      return { recorder: this.record(run, 1, created.announced) };
    });
  }

  newRun(run: Pick<RecordedRun, "key" | "request" | "plan">, digest: string): Omit<NewRun, "state"> {
    return { ...describedBy(run, this.options.sealing), replica: this.replica, digest };
  }

  /** Starts a run that the store assigns to this replica. @param announced of its events, what the store has. */
  record(run: RecordedRun, fence: number, announced?: NewRun["announced"]): Recorder {
    const { project, session, webhook } = describedBy(run, this.options.sealing);
    const recorder = new Recorder({
      run,
      fence,
      log: run.log,
      isAnnounced: announced !== undefined,
      source: { id: run.key, project, session, webhook },
      runLog: this.#logs.open(run.key, fence, announced),
    });
    if (this.options.isShared) run.holdBy(this.#hold(run.key, recorder));
    this.#recorders.set(run.key, recorder);
    this.lease.renewNow();
    void recorder.done.then(() => {
      this.#recorders.delete(run.key);
      if (recorder.failure !== undefined) this.#leftOvers.unstored(run.key, recorder.failure);
      if (webhook !== undefined) this.deliveries.runNow();
      this.#retaining.runEnded();
    });
    return recorder;
  }

  /** Protects an id from the lease's clean-up while a run is being created, claimed or ended. */
  whileHandled<Result>(id: string, act: () => Promise<Result>): Promise<Result> {
    return this.#leftOvers.whileHandled(id, act);
  }

  /** @param signal of the caller who waits for it. @throws StoreFailed */
  get(id: string, signal?: AbortSignal): Promise<StoredRun | undefined> {
    return this.#retryWhileDown(() => this.options.store.get(id), signal);
  }

  /** A run without its result, which may be large. */
  async summary(id: string, signal?: AbortSignal): Promise<StoredRun | undefined> {
    const [run] = await this.#retryWhileDown(() => this.options.store.list({ id, limit: 1 }), signal);
    return run;
  }

  #retryWhileDown<Result>(read: () => Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
    const { settings, log } = this.options;
    return retryWhileDown("read a run", settings.retryTimeoutMs, log, read, signal);
  }

  /** The run's records after this one, until its result. @throws NotFound, StoreFailed */
  follow(id: string, after: number, signal: AbortSignal): AsyncGenerator<Records, void, undefined> {
    return this.#logs.follow(id, after, signal);
  }

  /** @throws NotFound where the record after this one isn't kept any more; StoreFailed */
  async requireKept(id: string, after: number, signal: AbortSignal): Promise<void> {
    requireKept(id, await this.firstEventOf(id, signal), after);
  }

  /** The number of its first event that can still be read: 1, unless the run is in memory. @throws StoreFailed */
  firstEventOf(id: string, signal?: AbortSignal): Promise<number> {
    return this.#logs.firstOf(id, signal);
  }

  /** Open sessions of all replicas, the one that was used last first. @throws StoreFailed */
  async openSessions(query: Parameters<Store["sessions"]>[0]): Promise<readonly StoredSession[]> {
    const sessions = await this.store.sessions(query);
    const { isShared, openSessions } = this.options;
    if (isShared) return sessions;
    // In memory, the row of a session that was closed is deleted a while later.
    const isOpen = new Set(openSessions().map(keyOf));
    return sessions.filter((session) => isOpen.has(keyOf(session)));
  }

  /** Ends a run early, on any replica; it still ends with its one result. @throws NotFound when it has ended */
  async cancel(id: string): Promise<void> {
    const recorder = this.#recorders.get(id);
    if (recorder !== undefined) {
      recorder.run.cancel(new RunCancelled("The run was cancelled.", "caller"));
      return;
    }
    const run = await this.get(id);
    if (run === undefined || run.state === "ended")
      throw new NotFound(`There is no run '${idOfRun(id)}' to cancel: it has ended, or never started.`);
    if (run.state === "queued" && (await this.#cancelQueued(run))) return;
    await this.store.requestCancel(id);
  }

  /** Ends it without a start. False if a replica has just started it. */
  async #cancelQueued(run: StoredRun): Promise<boolean> {
    return this.whileHandled(run.id, async () => {
      const claim = await this.store.claim(run.id, this.replica);
      if (claim === undefined) return false;
      const end = endedBy(new RunCancelled("The run was cancelled before it began.", "caller"), run);
      await this.store.finish(run.id, claim.fence, end);
      this.deliveries.runNow();
      return true;
    });
  }

  /** Resolves once a run of this replica is recorded with its result, or lost. */
  async recorded(id: string): Promise<void> {
    await this.#recorders.get(id)?.done;
  }

  /**
   * The run once it has ended, on any replica. Undefined if it was deleted, or the reader left.
   * @throws StoreFailed also for a run that ended here while the store failed
   */
  async ended(id: string, signal: AbortSignal): Promise<StoredRun | undefined> {
    while (!signal.aborted) {
      const run = await this.get(id, signal);
      if (run === undefined || run.state === "ended") return run;
      const failure = this.#recorders.get(id)?.failure ?? this.#leftOvers.failureOf(id);
      if (failure !== undefined) throw failure;
      await this.#logs.ended(id, signal);
    }
    return undefined;
  }

  /** Called after the runs have ended: releases the lease and closes the store. */
  async close(): Promise<void> {
    await this.#retaining.close();
    await Promise.all([...this.#recorders.values()].map(({ done }) => done));
    await this.deliveries.close();
    await this.lease.leave().catch((error: unknown) => {
      this.options.log.warn({ error: messageOf(error) }, "the lease could not be released: it will expire");
    });
    await this.options.store.close();
  }

  #renewed({ runs, answers }: Renewal, isSure: boolean): void {
    const held = new Map(runs.map((run) => [run.id, run]));
    for (const [id, recorder] of this.#recorders) {
      const run = held.get(id);
      if (run === undefined || run.fence !== recorder.fence) {
        if (isSure) void this.#recheck(id, recorder);
        else recorder.lose(new RunCancelled(takenOver));
      } else if (run.cancelRequested)
        recorder.run.cancel(new RunCancelled("The run was cancelled.", "caller"));
    }
    void this.sessions.releaseClosed();
    for (const { runId, interactionId, answer } of answers) {
      void this.#forward(runId, interactionId, answer);
    }
    this.#leftOvers.end(runs);
  }

  /** Ends what acts here, before another replica says that it has ended. */
  #lapsed(): void {
    const { leaseMs } = this.options.settings;
    const reason = `The run has ended: this replica could not reach the store for ${leaseMs} ms.`;
    for (const recorder of this.#recorders.values()) recorder.lose(new StoreFailed(reason));
    this.options.onLapse();
  }

  #hold(id: string, { fence }: Recorder): LeasedHold {
    const { lease } = this;
    const isOurs = () => this.#recorders.get(id)?.fence === fence;
    return {
      fence,
      get isCurrent() {
        return lease.isCurrent && isOurs();
      },
      confirmed: (signal) => lease.confirmed(signal),
    };
  }

  /** What another replica could take at any moment isn't begun. @throws StoreFailed */
  async #requireLease(signal?: AbortSignal): Promise<void> {
    if (!this.options.isShared || this.lease.isCurrent) return;
    const late = AbortSignal.timeout(this.options.settings.retryTimeoutMs);
    await this.lease
      .confirmed(signal === undefined ? late : AbortSignal.any([late, signal]))
      .catch((cause: unknown) => {
        throw new StoreFailed("The store can't be reached: this replica starts nothing.", { cause });
      });
  }

  /** The list may be older than the run, or the run may have just ended: only its own row decides. */
  async #recheck(id: string, recorder: Recorder): Promise<void> {
    const run = await this.store.get(id).catch(() => null);
    if (run === null || this.#recorders.get(id) !== recorder) return;
    if (run?.replica === this.replica && run.fence === recorder.fence) return;
    recorder.lose(new RunCancelled(takenOver));
  }

  async #forward(runId: string, interactionId: string, answer: string): Promise<void> {
    const recorder = this.#recorders.get(runId);
    const body = recorder === undefined ? undefined : this.answers.unsealed(interactionId, answer);
    if (body === undefined) return;
    try {
      recorder?.run.answer(interactionId, body.value);
    } catch (error) {
      this.options.log.debug(
        { runId, error: messageOf(error) },
        "an answer came too late for the running turn",
      );
    }
  }
}
