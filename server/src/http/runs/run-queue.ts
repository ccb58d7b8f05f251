import { randomUUID } from "node:crypto";
import {
  AtCapacity,
  idOfRun,
  type Log,
  messageOf,
  NotFound,
  runKey,
  SessionElsewhere,
  toAmbitError,
  Unauthorized,
} from "@ambit/core";
import { onDisconnectOf, projectOf, type RunRequest } from "@ambit/core/contract";
import { endedBy, type RecordedRuns, recoveryOf, type Sealing } from "@ambit/durable";
import type { QueueLimits, StoredRun } from "@ambit/durable/store";
import {
  type CallersTrace,
  callersTraceSchema,
  type Run,
  type Runner,
  type RunOptions,
  type SessionName,
  type Slot,
} from "@ambit/runner";
import { z } from "zod";
import { type Principal, rulesOf, type Tenants, tenantOf } from "../../tenants/caller.js";
import type { SharedQuotas } from "../../tenants/shared-quotas.js";

/** Milliseconds between two polls for runs that other replicas queued. */
const pollMs = 1_000;
/** Queued runs among which a process that begins none of others looks for its own, at most. */
const maxOthers = 1_000;
/** Runs of one session that are cancelled for a newer one, at most. */
const maxRunsOfSession = 1_000;

export interface RunQueueOptions {
  readonly runs: RecordedRuns;
  readonly runner: Runner;
  readonly sealing: Sealing;
  /** What may be queued. */
  readonly limits: QueueLimits;
  readonly tenants: Tenants;
  readonly quotas: SharedQuotas;
  readonly log: Log;
  /** Whether it begins what other replicas have queued. */
  readonly takesOthers: boolean;
}

/** The content that is sealed in the store. */
interface Queued {
  readonly body: unknown;
  /** Project of the tenant that queued it; null: the operator. */
  readonly project: string | null;
  /** The hash of that tenant's token: tokens of one project may have different rules. */
  readonly token: string | null;
  /** The headers of its trace. */
  readonly trace: CallersTrace;
}

/** A run that waits. */
export interface QueuedRun extends Pick<StoredRun, "id" | "project"> {
  /** As its caller knows it. */
  readonly runId: string;
  readonly onDisconnect: ReturnType<typeof onDisconnectOf>;
}

/** Runs that wait for a slot on any replica, or for their session. */
export class RunQueue {
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #isClosed = false;

  constructor(readonly options: RunQueueOptions) {
    this.#schedule();
  }

  /**
   * Queues a request. It is planned first: a request that would be refused now isn't queued.
   * @throws RequestInvalid, BoundaryRefused, AtCapacity when too many wait
   */
  async add(
    { body, trace }: Pick<Queued, "body" | "trace">,
    id: string | undefined,
    digest: string,
    caller: Principal,
  ): Promise<{ readonly run: QueuedRun } | { readonly existing: StoredRun }> {
    const { runs, runner, sealing, limits } = this.options;
    const { request, plan } = await runner.plan(body, askerOf(caller, trace));
    const runId = request.runId ?? id ?? randomUUID();
    const key = runKey(runId, tenantOf(caller));
    const { project, token } = senderOf(caller);
    // Not sealed for a queue that is full anyway: sealing a large one takes a while.
    const full = await this.#whyFull(project, 0);
    if (full !== undefined) throw new AtCapacity(full);
    const sealedRequest = sealing.seal(key, { body, project, token, trace } satisfies Queued);
    const queued = {
      ...runs.newRun({ key, request, plan }, digest),
      state: "queued" as const,
      sealedRequest,
    };
    const existing = await runs.store.createQueued(queued, limits);
    if (existing === "queue_full")
      throw new AtCapacity(
        (await this.#whyFull(project, sealedRequest.length)) ?? "The queue was full: try again later.",
      );
    if (existing !== undefined) return { existing };
    const name = sessionOf(request);
    if (request.whenBusy === "interrupt" && name !== undefined) await this.#cancelBefore(key, name);
    void this.#lookWhenFree(request);
    return { run: { id: key, runId, project: queued.project, onDisconnect: onDisconnectOf(request) } };
  }

  /** Cancels the session's other runs, those that wait first: otherwise one of them would begin. */
  async #cancelBefore(key: string, name: SessionName): Promise<void> {
    const { runner } = this.options;
    await this.#cancelRuns(name, "queued", key);
    await this.#cancelRuns(name, "running", key);
    // One that has just been admitted isn't stored yet.
    const current = runner.runIn(name.session, name.project);
    if (current !== undefined) runner.cancel(current.key);
  }

  /**
   * Ends a session here with the runs that use it or wait for it, those that wait first: otherwise one of them would begin it anew.
   * Without the store, the session ends all the same.
   *
   * @returns whether there was any of it. @throws StoreFailed
   */
  async endSession(name: SessionName): Promise<boolean> {
    const { runs, runner } = this.options;
    const cancelling = runs.asking(() => this.#cancelRuns(name, "queued"));
    await cancelling.catch(() => undefined);
    const ended = await runner.endSession(name.session, name.project);
    return (await cancelling) || ended;
  }

  async #cancelRuns(name: SessionName, state: "queued" | "running", exceptKey?: string): Promise<boolean> {
    const { runs } = this.options;
    const cancelled = (await this.#runsOfSession(name, state)).filter(({ id }) => id !== exceptKey);
    for (const { id } of cancelled)
      await runs.cancel(id).catch((error: unknown) => {
        // It has ended meanwhile.
        if (!(error instanceof NotFound)) throw error;
      });
    return cancelled.length > 0;
  }

  /** Whether other runs of the request's session wait already. @throws StoreFailed */
  async hasRunsOf(request: RunRequest): Promise<boolean> {
    const name = sessionOf(request);
    return name !== undefined && (await this.#runsOfSession(name, "queued", 1)).length > 0;
  }

  /** @throws StoreFailed */
  #runsOfSession(
    { project, session }: SessionName,
    state: "queued" | "running",
    limit = maxRunsOfSession,
  ): Promise<readonly StoredRun[]> {
    return this.options.runs.store.list({ project: project ?? null, session, state, limit });
  }

  /** Looks once the run that has the session here has ended, if there is one. */
  async #lookWhenFree(request: RunRequest): Promise<void> {
    const { runs, runner } = this.options;
    const { sessionId } = request;
    const current = sessionId === undefined ? undefined : runner.runIn(sessionId, projectOf(request));
    await (current && runs.recorded(current.key));
    await this.look();
  }

  async #whyFull(project: string | null, added: number): Promise<string | undefined> {
    const { runs, limits } = this.options;
    const all = await runs.store.backlog();
    const ofProject = project === null ? undefined : await runs.store.backlog(project);
    return whyFull({ all, own: ofProject, added }, limits);
  }

  /** Begins as many as there are free slots. */
  look(): Promise<void> {
    this.#looking ??= this.#take().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  #schedule(): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => void this.look().then(() => this.#schedule()), pollMs);
    this.#timer.unref();
  }

  async #take(): Promise<void> {
    const { runs, log } = this.options;
    try {
      while (!this.#isClosed) {
        // Takes the slot first, since a claimed run has to begin.
        const slot = this.#reserve();
        if (slot === undefined) return;
        const id = await this.#next().catch((error: unknown) => {
          slot.release();
          throw error;
        });
        if (id === undefined) {
          slot.release();
          return;
        }
        await runs.whileHandled(id, () => this.#begin(id, slot));
      }
    } catch (error) {
      log.warn({ error: messageOf(error) }, "the queue of runs could not be read");
    }
  }

  #reserve(): Slot | undefined {
    try {
      return this.options.runner.reserve();
    } catch (error) {
      if (error instanceof AtCapacity) return undefined;
      throw error;
    }
  }

  /** Projects with fewer runs in progress, on all replicas, come before those with more. */
  async #next(): Promise<string | undefined> {
    const { quotas } = this.options;
    const withoutSessions: (string | null)[] = [];
    for (const except of await quotas.excludedInTurn()) {
      for (;;) {
        const run = await this.#nextExcept([...except, ...withoutSessions]);
        if (run === undefined) break;
        // Bound before it is claimed: a claimed run can't wait any more.
        if (await this.#hasSession(run)) return run.id;
        // The project's other runs wait behind it: they were queued after it.
        withoutSessions.push(run.project ?? null);
      }
    }
    return undefined;
  }

  async #nextExcept(projects: readonly (string | null)[]): Promise<StoredRun | undefined> {
    const { runs, takesOthers } = this.options;
    const ids = await runs.store.nextQueued(runs.replica, takesOthers ? 1 : maxOthers, projects);
    for (const id of ids) {
      const run = await runs.summary(id);
      if (takesOthers || run?.replica === runs.replica) return run;
    }
    return undefined;
  }

  /** False: its project has no session left, or another replica has just bound the session, and takes the run. */
  async #hasSession(run: StoredRun): Promise<boolean> {
    const { runs, quotas } = this.options;
    try {
      return (await runs.sessions.bindNamed(run, quotas.sessionsOfProject(run.project))) === "bound";
    } catch (error) {
      if (error instanceof SessionElsewhere) return false;
      throw error;
    }
  }

  async #begin(id: string, slot: Slot): Promise<void> {
    const { runs, runner, sealing, log } = this.options;
    const claim = await runs.store.claim(id, runs.replica).catch((error: unknown) => {
      slot.release();
      throw error;
    });
    if (claim === undefined) {
      slot.release();
      return;
    }
    try {
      const { body, trace, ...sender } = queuedSchema.parse(sealing.unseal(id, claim.sealedRequest));
      const caller = this.#callerOf(sender);
      const options = {
        keepsEvents: false,
        runId: idOfRun(id),
        ...askerOf(caller, trace),
      };
      const run = await slot.admit(body, options);
      await this.#bind(run).catch((error: unknown) => {
        run.withdraw();
        throw error;
      });
      // No run fails for its telemetry.
      await runs.store.keepRecovery(id, claim.fence, recoveryOf(run, sealing)).catch((error: unknown) => {
        run.log.warn({ error: messageOf(error) }, "if this run is lost, its trace lacks its end");
      });
      const recorder = runs.record(run, claim.fence);
      run.log.info({ harness: run.plan.harness.actor.id }, "a queued run begins");
      void recorder.done.then(() => this.look());
    } catch (error) {
      slot.release();
      log.warn({ runId: id, error }, "a queued run could not begin");
      const failure = toAmbitError(error);
      runner.refused(failure.toFailure());
      const run = await runs.get(id);
      if (run !== undefined) await runs.store.finish(id, claim.fence, endedBy(failure, run));
    }
  }

  /** It was bound in the queue. Its sandbox may be another one since, and a replica that was busy may have lost it. */
  async #bind(run: Run): Promise<void> {
    const { runs, quotas } = this.options;
    const project = projectOf(run.request);
    if ((await runs.sessions.bind(run, quotas.sessionsOfProject(project))) === "bound") return;
    throw new AtCapacity("The project has reached its quota of open sessions: end one of them.");
  }

  /** @throws Unauthorized where its token was withdrawn while it waited */
  #callerOf({ project, token }: Pick<Queued, "project" | "token">): Principal {
    if (project === null) return { kind: "operator" };
    const ofProject = this.options.tenants.list.filter((one) => one.project === project);
    // Which of several it was, a row of an earlier version doesn't say.
    const isOnly = token === null && ofProject.length === 1;
    const tenant = ofProject.find((one) => isOnly || one.token === token);
    if (tenant === undefined) throw new Unauthorized();
    return { kind: "tenant", tenant };
  }
}

function sessionOf(request: RunRequest): SessionName | undefined {
  const { sessionId: session } = request;
  return session === undefined ? undefined : { session, project: projectOf(request) };
}

const queuedSchema = z.object({
  body: z.unknown(),
  project: z.string().nullable(),
  // Both absent in rows of an earlier version.
  token: z.string().nullable().default(null),
  trace: callersTraceSchema.default({}),
});

function askerOf(caller: Principal, trace: CallersTrace): Pick<RunOptions, "caller" | "trace"> {
  return { trace, ...(caller.kind === "tenant" ? { caller: rulesOf(caller.tenant) } : {}) };
}

function senderOf(caller: Principal): Pick<Queued, "project" | "token"> {
  if (caller.kind === "operator") return { project: null, token: null };
  const { project, token } = caller.tenant;
  return { project, token };
}

/**
 * Why no run more may be queued; undefined if one may. The rest of the queue is shared: a project may not have more queued than is
 * left for others. Pure.
 * @param own of the run's project. Undefined: it has none. @param added bytes of its request
 */
export function whyFull(
  {
    all,
    own,
    added,
  }: { readonly all: QueueLimits; readonly own: QueueLimits | undefined; readonly added: number },
  limits: QueueLimits,
): string | undefined {
  const free = limits.queuedRuns - all.queuedRuns;
  if (free <= 0) return `${limits.queuedRuns} runs are already queued.`;
  if (own !== undefined && own.queuedRuns >= free)
    return `${own.queuedRuns} runs of the project are already queued.`;
  const freeBytes = limits.queuedBytes - all.queuedBytes;
  if (added > freeBytes)
    return "The requests of queued runs take too much room: try again later, or send a smaller one.";
  if (own !== undefined && own.queuedBytes + added > freeBytes)
    return "The requests of the project's queued runs take too much room: try again later, or send a smaller one.";
  return undefined;
}
