import { AtCapacity, NotFound } from "@ambit/core";
import { idOfRun } from "@ambit/core/contract";
import { stepAtLostRun } from "@ambit/core/plugin";
import type { RunLog, RunLogs } from "../log/run-log.js";
import type { MemorySettings } from "../settings.js";
import type {
  InteractionQuery,
  SessionPlace,
  Store,
  StoredInteraction,
  StoredSession,
  StoredSessionName,
  StoredSettlement,
} from "../store/index.js";
import type { MemoryRun } from "./memory-run.js";
import { isOf, MemoryRuns } from "./memory-runs.js";

/** Answers that are remembered as used. */
const maxUsedAnswers = 65_536;

export interface MemoryStoreOptions {
  readonly settings: MemorySettings;
  /** Where callers reach this process. */
  readonly address: string;
  /** The named sessions that are open here. */
  readonly openSessions: () => readonly StoredSessionName[];
}

/** The store of a server without one: runs end with this process, and no other one shares them. */
export class MemoryStore {
  readonly #runs: MemoryRuns;
  /** Each with its run until the outcome is known. */
  readonly #usedAnswers = new Map<string, string | undefined>();
  readonly #sessions = new Map<string, StoredSession>();

  constructor(readonly options: MemoryStoreOptions) {
    this.#runs = new MemoryRuns(options.settings);
  }

  get logs(): RunLogs {
    return {
      open: (id) => this.#logOf(id),
      follow: (id, after, signal) => this.#run(id).log.follow(after, signal),
      firstOf: (id) => this.#run(id).recent.first,
      ended: async (id, signal) => {
        const recent = this.#runs.get(id)?.recent;
        while (recent !== undefined && recent.end === undefined && !signal.aborted)
          await recent.changed(signal);
      },
    };
  }

  /** As a store, for what asks rows. Each of its methods settles at once. */
  get store(): Store {
    const runs = this.#runs;
    return {
      create: async (run) => {
        const existing = runs.create(run);
        return existing === "over_quota" ? undefined : existing;
      },
      createQueued: async (run, limits) => runs.createQueued(run, limits),
      createWithin: async (run, quota) => runs.create(run, quota),
      usage: async (projects) => projects.map((project) => runs.usages.of(project)),
      claim: async (id, replica) => runs.claim(id, replica),
      keepRecovery: async (id, fence, { trace }) => {
        const run = this.#held(id, fence);
        if (run !== undefined) run.trace = trace;
      },
      nextQueued: async (_replica, limit, except = []) => runs.queued(limit, except),
      append: async ({ runId, fence, ...group }) => this.#held(runId, fence)?.append(group) ?? "fenced",
      finish: async (id, fence, end) => {
        const run = this.#held(id, fence);
        if (run === undefined) return "fenced";
        this.#endClaims(id);
        return runs.finish(run, end);
      },
      get: async (id) => runs.get(id)?.row(true),
      list: async (query) => runs.list(query),
      heads: async (ids) => ids.flatMap((id) => runs.get(id)?.head ?? []),
      read: async (id, after, maxCharacters) => runs.get(id)?.recent.after(after, maxCharacters) ?? [],
      delete: async (id) => runs.delete(id),
      retain: async ({ maxAgeMs, interactionMs }) => ({
        deleted: runs.retain(maxAgeMs, interactionMs),
        excess: 0,
      }),

      interactions: async (query) => this.#interactions(query),
      answer: async (id, answer, maxCharacters) => this.#answer(id, answer, maxCharacters),
      claimAnswer: async (id, run) => this.#claimAnswer(id, run),
      settleAnswer: async (id, run, settlement) => this.#settleAnswer(id, run, settlement),
      dropAnswer: async (id) => this.#dropAnswer(id),
      expiring: async (maxAgeMs) => this.#expiring(maxAgeMs),
      expire: async ({ id, runId }, expiry) => {
        const run = runs.get(runId);
        return run === undefined ? false : runs.changing(run, () => run.expire(id, expiry));
      },

      holdSession: async (place, maxOpen) => this.#holdSession(place, maxOpen),
      releaseSession: async (name) => void this.#sessions.delete(keyOf(name)),
      sessions: async ({ project, limit }) => this.#openSessions(project).slice(0, limit),

      backlog: async (project) => ({
        ...runs.countQueued(project),
        pendingDeliveries: 0,
        failedDeliveries: 0,
      }),
      close: async () => {},
      ...ofOneProcess(() => runs.running),
    };
  }

  #logOf(id: string): RunLog {
    const run = this.#run(id);
    return run.log.writer({
      append: (group) => run.append(group),
      finish: (end) => {
        this.#endClaims(id);
        return this.#runs.finish(run, end);
      },
    });
  }

  /** @throws NotFound */
  #run(id: string): MemoryRun {
    const run = this.#runs.get(id);
    if (run === undefined)
      throw new NotFound(`There is no run '${idOfRun(id)}': it was deleted, or never started.`);
    return run;
  }

  #held(id: string, fence: number): MemoryRun | undefined {
    const run = this.#runs.get(id);
    return run?.fence === fence ? run : undefined;
  }

  #interactions(query: InteractionQuery): readonly StoredInteraction[] {
    const { id, project, state, runId, session, after, limit, maxCharacters = Infinity } = query;
    const { without = [], holds, maxAgeMs } = query;
    const found: StoredInteraction[] = [];
    let characters = 0;
    let isPast = after === undefined;
    for (const one of this.#questions()) {
      const isWanted =
        isPast &&
        (id === undefined || one.id === id) &&
        isOf(one, project) &&
        (state === undefined || one.state === state) &&
        (runId === undefined || one.runId === runId) &&
        (session === undefined || one.session === session) &&
        (maxAgeMs === undefined || one.createdAt >= Date.now() - maxAgeMs) &&
        (holds !== true ||
          one.state === "open" ||
          ((one.state === "answered" || one.state === "used") && one.answer !== undefined));
      isPast ||= one.id === after && isOf(one, project);
      if (!isWanted) continue;
      if (found.length === limit || (found.length > 0 && characters >= maxCharacters)) break;
      found.push({
        ...one,
        ...(without.includes("payload") ? { payload: "" } : {}),
        ...(without.includes("answer") ? { answer: undefined } : {}),
      });
      characters += one.payload.length;
    }
    return found;
  }

  /** The newest first. */
  #questions(): readonly StoredInteraction[] {
    const all = this.#runs.all.flatMap(({ questions }) => [...questions.values()]);
    return all.reverse().sort((one, other) => other.createdAt - one.createdAt);
  }

  /** @throws AtCapacity where it takes more memory than all runs may, so that its run had to go */
  #answer(id: string, answer: string, maxCharacters: number): StoredInteraction | undefined {
    const run = this.#asking(id);
    if (run === undefined) return undefined;
    const answered = this.#runs.changing(run, () => run.answer(id, answer, maxCharacters));
    if (this.#runs.get(run.created.id) === run) return answered;
    throw new AtCapacity("The answer takes too much memory: send a shorter one, or raise memory.maxMiB.");
  }

  #dropAnswer(id: string): void {
    const isClaimed = this.#usedAnswers.get(id) !== undefined;
    if (isClaimed) return;
    this.#use(id, undefined);
    this.#changing(id, (asking) => asking.advance(id, "drop"));
  }

  #use(id: string, run: string | undefined): void {
    this.#usedAnswers.set(id, run);
    const [oldest] = this.#usedAnswers.keys();
    if (this.#usedAnswers.size > maxUsedAnswers && oldest !== undefined) this.#usedAnswers.delete(oldest);
  }

  #claimAnswer(id: string, run: string): boolean {
    if (this.#usedAnswers.has(id)) return this.#usedAnswers.get(id) === run;
    const asking = this.#asking(id);
    if (asking !== undefined && !asking.advance(id, "claim")) return false;
    this.#use(id, run);
    return true;
  }

  #settleAnswer(id: string, run: string, settlement: StoredSettlement): void {
    if (this.#usedAnswers.get(id) !== run) return;
    const { step } = settlement;
    if (step === "return") this.#usedAnswers.delete(id);
    else this.#usedAnswers.set(id, undefined);
    const outcome = step === "spend" ? settlement.outcome : undefined;
    this.#changing(id, (asking) => asking.advance(id, step, outcome));
  }

  /** What the run still has when it ends. */
  #endClaims(run: string): void {
    for (const [id, claimant] of this.#usedAnswers) {
      if (claimant !== run) continue;
      const kind = this.#asking(id)?.questions.get(id)?.kind;
      this.#settleAnswer(id, run, { step: stepAtLostRun(kind ?? "user_approval") });
    }
  }

  #asking(id: string): MemoryRun | undefined {
    return this.#runs.all.find(({ questions }) => questions.has(id));
  }

  #changing(id: string, change: (asking: MemoryRun) => unknown): void {
    const asking = this.#asking(id);
    if (asking !== undefined) this.#runs.changing(asking, () => change(asking));
  }

  #expiring(maxAgeMs: number): readonly StoredInteraction[] {
    const before = Date.now() - maxAgeMs;
    return this.#runs.all
      .filter(({ state }) => state === "ended")
      .flatMap(({ questions }) => [...questions.values()])
      .filter(({ state, createdAt }) => state === "open" && createdAt < before)
      .slice(0, 100)
      .map((one) => ({ ...one }));
  }

  #holdSession(place: SessionPlace, maxOpen = Infinity) {
    const now = Date.now();
    const open = new Set(this.options.openSessions().map(keyOf));
    const others = [...this.#sessions.values()].filter(
      (one) =>
        one.project === place.project &&
        keyOf(one) !== keyOf(place) &&
        (open.has(keyOf(one)) || now - one.usedAt < openingMs),
    );
    if (!open.has(keyOf(place)) && others.length >= maxOpen) return "over_quota" as const;
    const { createdAt = now } = this.#sessions.get(keyOf(place)) ?? {};
    const held = { ...place, address: this.options.address, createdAt, usedAt: now };
    this.#sessions.delete(keyOf(place));
    this.#sessions.set(keyOf(place), held);
    return { held: true, fence: 1 } as const;
  }

  /** The one that was used last first. */
  #openSessions(project: string | null | undefined): readonly StoredSession[] {
    const open = new Set(this.options.openSessions().map(keyOf));
    return [...this.#sessions.values()].filter((one) => open.has(keyOf(one)) && isOf(one, project)).reverse();
  }
}

/** Milliseconds from binding a session until its run begins, and the runner counts it as open. */
const openingMs = 5_000;

const keyOf = ({ project, session }: StoredSessionName) => JSON.stringify([project ?? null, session]);

type Shared =
  | "requestCancel"
  | "join"
  | "renew"
  | "drain"
  | "supersede"
  | "leave"
  | "abandoned"
  | "takeOver"
  | "keepSession"
  | "endSession"
  | "keepUse"
  | "takeDeliveries"
  | "settleDelivery"
  | "redeliver"
  | "deliveries";

/** What a store does for several processes, or for messages that outlive one: here there is none of it. */
function ofOneProcess(running: () => MemoryRuns["running"]): Pick<Store, Shared> {
  return {
    requestCancel: async () => false,
    join: async () => "joined",
    renew: async () => ({ runs: running().map((run) => ({ ...run, cancelRequested: false })), answers: [] }),
    drain: async () => {},
    supersede: async () => {},
    leave: async () => {},
    abandoned: async () => [],
    takeOver: async () => undefined,
    keepSession: async () => "written",
    endSession: async () => undefined,
    keepUse: async (_name, use) => use,
    takeDeliveries: async () => [],
    settleDelivery: async () => {},
    redeliver: async () => undefined,
    deliveries: async () => [],
  };
}
