import { createHash, randomUUID } from "node:crypto";
import { hostname, uptime } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type AmbitError,
  cancelledByCaller,
  errorDetailOf,
  messageOf,
  RunnerLost,
  type StoreFailed,
} from "@ambit/core";
import { idOfRun, type RunResult } from "@ambit/core/contract";
import { type Log, unlessAborted } from "@ambit/core/plugin";
import { runEnd } from "./recorder.js";
import type { HeldRun, Renewal, RunEnd, Store, StoredRun } from "./store.js";
import type { MessageSource } from "./webhooks.js";

/** Two clocks that can't be set. The second one also counts while the machine is suspended. Milliseconds. */
export interface ClockReading {
  readonly monotonic: number;
  readonly sinceBoot: number;
}

const readClocks = (): ClockReading => ({
  monotonic: performance.now(),
  sinceBoot: uptime() * 1_000,
});

/**
 * How long this replica may act, by its own clocks. It begins when a renewal is sent, and the store's lease when that
 * arrives: so it is over first.
 */
export class Tenure {
  #since: ClockReading | undefined;

  constructor(
    readonly leaseMs: number,
    readonly read: () => ClockReading = readClocks,
  ) {}

  /** @param sent read before the renewal was sent. One that was sent earlier than the last one changes nothing. */
  renewed(sent: ClockReading): void {
    if (this.#since === undefined || sent.monotonic > this.#since.monotonic) this.#since = sent;
  }

  /** Whether there was a renewal. */
  get hasBegun(): boolean {
    return this.#since !== undefined;
  }

  /** Negative when it is over. */
  get leftMs(): number {
    if (this.#since === undefined) return Number.NEGATIVE_INFINITY;
    const now = this.read();
    const { monotonic, sinceBoot } = this.#since;
    return this.leaseMs - Math.max(now.monotonic - monotonic, now.sinceBoot - sinceBoot);
  }
}

/** Milliseconds between two renewals while runs are here: the response also brings requests of other replicas. */
const busyMs = 250;
/** Milliseconds by which the end of the lease is noticed late if the process was stopped meanwhile. */
const stoppedMs = 500;
/** Milliseconds between two attempts of a process that was stopped. */
const pauseMs = 50;

export interface LeaseOptions extends LostRunEnder {
  readonly store: Pick<Store, "renew" | "drain" | "leave" | "abandoned" | "takeOver" | "finish">;
  readonly replica: string;
  /** The address at which callers reach this replica. */
  readonly address: string;
  /** Milliseconds that this replica may act after a renewal. */
  readonly leaseMs: number;
  /** While this acts, nothing else here ends the run. */
  readonly whileHandled: <Result>(id: string, act: () => Promise<Result>) => Promise<Result>;
  /** Whether there are runs here that other replicas may have requests for. */
  readonly isBusy: () => boolean;
  /** @param isSure false if the lease was over before: then a run that isn't listed may be another replica's. */
  readonly onRenewal: (renewal: Renewal, isSure: boolean) => void;
  /** The lease is over: another replica will soon take the runs. Called once for each lapse. */
  readonly onLapse: () => void;
}

/** Milliseconds that other replicas wait after that: time for this one to end its runs. */
export const stopMs = (leaseMs: number) => Math.ceil(leaseMs / 3);

/**
 * Renews this replica's lease, and ends the runs of replicas whose lease has expired. Between the end of its lease and
 * the next renewal this replica doesn't act.
 */
export class Lease {
  readonly #tenure: Tenure;
  #timer: NodeJS.Timeout | undefined;
  #lapse: NodeJS.Timeout | undefined;
  #renewing: Promise<void> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** When the lease was renewed after it had lapsed. */
  #recoveredAt = Number.NEGATIVE_INFINITY;
  #next = Promise.withResolvers<void>();
  #isClosed = false;

  constructor(readonly options: LeaseOptions) {
    this.#tenure = new Tenure(options.leaseMs);
  }

  /** @throws Error when the store can't be reached. */
  async take(): Promise<void> {
    await this.#renew();
    this.#schedule();
  }

  /** Whether this replica may act now. */
  get isCurrent(): boolean {
    return this.#tenure.leftMs > 0;
  }

  /** Resolves once this replica may act: immediately, or after the next renewal. @throws the signal's reason */
  async confirmed(signal: AbortSignal): Promise<void> {
    while (!this.isCurrent) await unlessAborted(signal, () => this.#next.promise);
    signal.throwIfAborted();
  }

  /** Renews soon, since there are runs now. */
  renewNow(): void {
    clearTimeout(this.#timer);
    this.#schedule();
  }

  /** Called before another process can listen at this address, which then waits for this lease to end. */
  async drain(): Promise<void> {
    const { store, replica, log } = this.options;
    await store.drain(replica).catch((error: unknown) => {
      log.warn({ error: messageOf(error) }, "that this server drains could not be stored");
    });
  }

  async leave(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#lapse);
    await this.#renewing;
    await this.options.store.leave(this.options.replica);
  }

  #schedule(): void {
    if (this.#isClosed) return;
    const { leaseMs, isBusy } = this.options;
    const waitMs = isBusy() ? Math.min(busyMs, leaseMs / 5) : leaseMs / 5;
    this.#timer = setTimeout(() => {
      this.#renewing ??= this.#beat().finally(() => {
        this.#renewing = undefined;
        this.#schedule();
      });
    }, waitMs);
    this.#timer.unref();
  }

  async #beat(): Promise<void> {
    try {
      // A connection that was cut off answers neither way, and the next attempt may get another one.
      if (!(await this.#renewedWithin(this.options.leaseMs / 3))) throw new Error("no answer in time");
      await this.#endAbandoned();
    } catch (error) {
      this.options.log.warn({ error: messageOf(error) }, "the store could not be reached to renew the lease");
    }
  }

  /** False if there is no answer in time; one that arrives later still counts. @throws Error of the store */
  async #renewedWithin(milliseconds: number): Promise<boolean> {
    const renewing = this.#renew().then(() => true);
    renewing.catch(() => undefined);
    const waiting = new AbortController();
    const late = sleep(milliseconds, false, { ref: false, signal: waiting.signal }).catch(() => false);
    try {
      return await Promise.race([renewing, late]);
    } finally {
      waiting.abort();
    }
  }

  async #renew(): Promise<void> {
    const { store, replica, address, leaseMs, onRenewal } = this.options;
    const sent = this.#tenure.read();
    const renewal = await store.renew(replica, address, leaseMs + stopMs(leaseMs));
    if (this.#isClosed) return;
    const isSure = this.isCurrent;
    onRenewal(renewal, isSure);
    if (!isSure && this.#tenure.hasBegun) this.#recoveredAt = performance.now();
    this.#tenure.renewed(sent);
    if (!this.isCurrent) return;
    this.#watch();
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  /** Waits for the end of the lease. */
  #watch(): void {
    clearTimeout(this.#lapse);
    this.#lapse = setTimeout(() => void this.#over(), Math.max(0, this.#tenure.leftMs));
    this.#lapse.unref();
  }

  async #over(): Promise<void> {
    const { leftMs } = this.#tenure;
    if (leftMs > 0) return this.#watch();
    // The process or its machine was stopped: the store knows whether the runs are still this replica's.
    if (leftMs < -stoppedMs && (await this.#renewsAgain())) return;
    if (this.isCurrent || this.#isClosed) return;
    const { leaseMs, log, onLapse } = this.options;
    log.error({ leaseMs }, "the lease could not be renewed: this replica ends its runs and sessions");
    onLapse();
  }

  /** Connections may have been dropped meanwhile, so it tries several times. */
  async #renewsAgain(): Promise<boolean> {
    const end = performance.now() + stopMs(this.options.leaseMs);
    for (let left = end - performance.now(); left > 0; left = end - performance.now()) {
      if (await this.#renewedWithin(left).catch(() => false)) return this.isCurrent;
      await sleep(pauseMs, undefined, { ref: false });
    }
    return false;
  }

  async #endAbandoned(): Promise<void> {
    const { store, replica, leaseMs, whileHandled } = this.options;
    const now = performance.now();
    // What stopped this process may have stopped others too, such as a machine that slept: they renew theirs first.
    if (now - this.#recoveredAt < stopMs(leaseMs)) return;
    if (now - this.#lookedAt < leaseMs / 5) return;
    this.#lookedAt = now;
    for (const run of await store.abandoned()) {
      if (!this.isCurrent) return;
      await whileHandled(run.id, async () => {
        const fence = await store.takeOver(run.id, run.fence, replica);
        if (fence !== undefined) await endLost(this.options, run, fence);
      });
    }
  }
}

/** Common prefix of the ids of all processes that listen at one address of one host, one after the other. */
export function placePrefix(place: string): string {
  const name = JSON.stringify([hostname(), place]);
  return `${createHash("sha256").update(name).digest("hex").slice(0, 16)}-`;
}

/** @param place undefined: the process listens nowhere, and has a prefix that no other one has */
export function newReplica(place: string | undefined): string {
  return `${placePrefix(place ?? randomUUID())}${randomUUID()}`;
}

/** The end of a run that produced no result. */
export function endedBy(failure: AmbitError, run: MessageSource): RunEnd {
  const { id, session } = run;
  const ended = { runId: idOfRun(id), events: [], sessionId: session };
  const result: RunResult = cancelledByCaller(failure)
    ? { ok: true, ...ended, stopReason: "cancelled" }
    : {
        ok: false,
        ...ended,
        error: failure.message,
        failure: failure.toFailure(),
        errorDetail: errorDetailOf(failure.toFailure(), failure.message),
      };
  return runEnd(run, result);
}

/** Ends runs whose replica is lost. */
interface LostRunEnder {
  readonly store: Pick<Store, "finish">;
  readonly log: Log;
  /** Called when the run of a lost replica has been ended. */
  readonly onLost: (run: StoredRun) => void;
}

/** Ends a run under the fence that this replica has for it. @throws Error when the store can't be reached */
async function endLost({ store, log, onLost }: LostRunEnder, run: StoredRun, fence: number): Promise<void> {
  const { id: runId, session: sessionId, project: projectId, replica } = run;
  log.warn({ runId, sessionId, projectId, replica }, "a run's replica is lost: the run ends");
  if ((await store.finish(runId, fence, endedBy(new RunnerLost(), run))) === "written") onLost(run);
}

/** Stores the end of a run that has ended here while the store failed. @throws Error when the store can't be reached */
async function endUnstored(
  { store, log }: Pick<LostRunEnder, "store" | "log">,
  run: StoredRun,
  fence: number,
  failure: StoreFailed,
): Promise<void> {
  log.warn({ runId: run.id }, "a run ended while the store failed: now its end is stored");
  await store.finish(run.id, fence, endedBy(failure, run));
}

/** Ends runs that the store assigns to this replica, and that aren't here: their results couldn't be stored. */
export class LeftOvers {
  /** Runs that something here is creating, claiming or ending, and how many times. */
  readonly #handled = new Map<string, number>();
  /** Runs that ended here while the store failed, until it has their ends. */
  readonly #unstored = new Map<string, StoreFailed>();

  /** @param isHere whether a run is being recorded here. */
  constructor(
    readonly options: LostRunEnder & { readonly store: Pick<Store, "get" | "finish"> },
    readonly isHere: (id: string) => boolean,
  ) {}

  /** Why a run's result isn't in the store. */
  failureOf(id: string): StoreFailed | undefined {
    return this.#unstored.get(id);
  }

  unstored(id: string, failure: StoreFailed): void {
    this.#unstored.set(id, failure);
  }

  /** A run isn't left over while this acts: it creates, claims or ends the run. */
  async whileHandled<Result>(id: string, act: () => Promise<Result>): Promise<Result> {
    const count = (by: number) => (this.#handled.get(id) ?? 0) + by;
    this.#handled.set(id, count(1));
    try {
      return await act();
    } finally {
      const left = count(-1);
      if (left === 0) this.#handled.delete(id);
      else this.#handled.set(id, left);
    }
  }

  /** @param held every run of this replica, as the store has it. */
  end(held: readonly HeldRun[]): void {
    // Each renewal lists a run again until its end is stored.
    for (const { id, fence } of held)
      if (!this.#isActive(id)) void this.whileHandled(id, () => this.#end(id, fence));
    const ids = new Set(held.map(({ id }) => id));
    for (const id of this.#unstored.keys()) if (!ids.has(id)) this.#unstored.delete(id);
  }

  #isActive(id: string): boolean {
    return this.isHere(id) || this.#handled.has(id);
  }

  async #end(id: string, fence: number): Promise<void> {
    const { store, log } = this.options;
    try {
      const run = await store.get(id);
      if (run?.state !== "running" || this.isHere(id)) return;
      const failure = this.#unstored.get(id);
      if (failure === undefined) await endLost(this.options, run, fence);
      else await endUnstored(this.options, run, fence, failure);
      this.#unstored.delete(id);
    } catch (error) {
      log.warn({ error: messageOf(error) }, "a run that was lost could not be ended");
    }
  }
}
