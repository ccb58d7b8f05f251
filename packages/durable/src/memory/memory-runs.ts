import type { MemorySettings } from "../settings.js";
import type { NewRun, QueueLimits, RunEnd, RunQuery, RunQuota, StoredRun, Written } from "../store/index.js";
import { MemoryRun } from "./memory-run.js";
import { Usages } from "./usage.js";

/** The ended runs of one project, the one that ended first at the front. */
interface EndedRuns {
  readonly runs: Set<MemoryRun>;
  size: number;
}

const mebibyte = 1_048_576;

/** The runs of this process. Those that have ended are kept for a while, within bounds for all and for each project. */
export class MemoryRuns {
  readonly #runs = new Map<string, MemoryRun>();
  /** Those that haven't ended. */
  readonly #live = new Set<MemoryRun>();
  readonly #ended = new Map<string | undefined, EndedRuns>();
  #endedSize = 0;
  #created = 0;
  readonly usages = new Usages((project) => this.#liveOf("running", project).length);

  constructor(readonly settings: MemorySettings) {}

  get(id: string): MemoryRun | undefined {
    return this.#runs.get(id);
  }

  get all(): readonly MemoryRun[] {
    return [...this.#runs.values()];
  }

  /** The ids of runs in progress, with their fences. */
  get running(): readonly { readonly id: string; readonly fence: number }[] {
    return [...this.#live].flatMap(({ state, head }) => (state === "running" ? [head] : []));
  }

  create(run: NewRun, quota?: RunQuota): StoredRun | "over_quota" | undefined {
    const existing = this.#runs.get(run.id);
    if (existing !== undefined) return existing.row(true);
    const { project } = run;
    if (quota !== undefined && project !== undefined && !this.usages.hasRoom(project, quota))
      return "over_quota";
    this.#created += 1;
    const created = new MemoryRun(run, this.#created, this.settings.runMiB * mebibyte);
    this.#runs.set(run.id, created);
    this.#live.add(created);
    if (run.state === "running") this.usages.began(project);
    return undefined;
  }

  createQueued(run: NewRun, { queuedRuns, queuedBytes }: QueueLimits): StoredRun | "queue_full" | undefined {
    const { id, project, sealedRequest = "" } = run;
    const all = this.countQueued(undefined);
    const own = project === undefined ? { queuedRuns: 0, queuedBytes: 0 } : this.countQueued(project);
    const hasRoom =
      all.queuedRuns + own.queuedRuns < queuedRuns &&
      all.queuedBytes + own.queuedBytes + sealedRequest.length <= queuedBytes;
    if (!hasRoom) return this.#runs.get(id)?.row(true) ?? "queue_full";
    const existing = this.create(run);
    return existing === "over_quota" ? undefined : existing;
  }

  claim(id: string, replica: string): { fence: number; sealedRequest: string } | undefined {
    const run = this.#runs.get(id);
    if (run?.state !== "queued" || run.sealedRequest === undefined) return undefined;
    const { sealedRequest } = run;
    run.sealedRequest = undefined;
    run.state = "running";
    run.startedAt = Date.now();
    run.replica = replica;
    run.fence += 1;
    this.usages.began(run.project);
    return { fence: run.fence, sealedRequest };
  }

  /** The oldest first. @param except projects; null: none. */
  queued(limit: number, except: readonly (string | null)[]): readonly string[] {
    const found: string[] = [];
    for (const { state, created, project } of this.#live) {
      if (state === "queued" && !except.includes(project ?? null)) found.push(created.id);
      if (found.length === limit) break;
    }
    return found;
  }

  countQueued(project: string | null | undefined): QueueLimits {
    const queued = this.#liveOf("queued", project);
    const queuedBytes = queued.reduce((sum, { sealedRequest = "" }) => sum + sealedRequest.length, 0);
    return { queuedRuns: queued.length, queuedBytes };
  }

  finish(run: MemoryRun, end: RunEnd): Written {
    const written = run.finish(end);
    if (written === "fenced") return written;
    this.#live.delete(run);
    this.usages.spent(run.project, end.usd ?? 0);
    const ended = this.#ended.get(run.project) ?? { runs: new Set(), size: 0 };
    this.#ended.set(run.project, ended);
    ended.runs.add(run);
    ended.size += run.size;
    this.#endedSize += run.size;
    this.#makeRoom(ended);
    return written;
  }

  /** The newest first, without results. */
  list({ id, project, session, state, after, limit }: RunQuery): readonly StoredRun[] {
    if (id !== undefined) {
      const run = this.#runs.get(id);
      return run === undefined ? [] : [run.row(false)];
    }
    const last = after === undefined ? undefined : this.#runs.get(after);
    const before =
      last !== undefined && isOf(last, project) ? last.order : after === undefined ? Infinity : 0;
    const found: StoredRun[] = [];
    for (const run of [...this.#runs.values()].reverse()) {
      if (run.order >= before || !isOf(run, project)) continue;
      if (session !== undefined && run.session !== session) continue;
      if (state !== undefined && run.state !== state) continue;
      found.push(run.row(false));
      if (found.length === limit) break;
    }
    return found;
  }

  /** False if there is no ended run of that id. */
  delete(id: string): boolean {
    const run = this.#runs.get(id);
    const ended = run === undefined ? undefined : this.#ended.get(run.project);
    if (run === undefined || ended?.runs.delete(run) !== true) return false;
    this.#runs.delete(id);
    ended.size -= run.size;
    this.#endedSize -= run.size;
    if (ended.runs.size === 0) this.#ended.delete(run.project);
    return true;
  }

  /** Deletes what ended long ago, unless a question waits. @returns how many runs that were. */
  retain(maxAgeMs: number, interactionMs: number): number {
    const since = Date.now() - maxAgeMs;
    const old = [...this.#runs.values()].filter(
      (run) => run.endedAt !== undefined && run.endedAt < since && !run.waits(interactionMs),
    );
    return old.filter((run) => this.delete(run.created.id)).length;
  }

  /** Changes an ended run, which may then hold more. */
  changing<Result>(run: MemoryRun, change: () => Result): Result {
    const before = run.size;
    const result = change();
    const ended = this.#ended.get(run.project);
    if (ended?.runs.has(run) !== true) return result;
    ended.size += run.size - before;
    this.#endedSize += run.size - before;
    this.#makeRoom(ended);
    return result;
  }

  #makeRoom(ended: EndedRuns): void {
    const { maxRunsPerProject, maxMiB } = this.settings;
    while (ended.runs.size > maxRunsPerProject) this.#deleteOldest(ended);
    while (this.#endedSize > maxMiB * mebibyte) {
      const most = this.#largest();
      if (most === undefined) return;
      this.#deleteOldest(most);
    }
  }

  #largest(): EndedRuns | undefined {
    let largest: EndedRuns | undefined;
    for (const ended of this.#ended.values())
      if (largest === undefined || ended.size > largest.size) largest = ended;
    return largest;
  }

  /** Runs with an open question last: it would be gone without a word. */
  #deleteOldest({ runs }: EndedRuns): void {
    let [oldest] = runs;
    for (const run of runs) {
      if (run.isWaiting) continue;
      oldest = run;
      break;
    }
    if (oldest !== undefined) this.delete(oldest.created.id);
  }

  #liveOf(state: "queued" | "running", project: string | null | undefined): readonly MemoryRun[] {
    return [...this.#live].filter((run) => run.state === state && isOf(run, project));
  }
}

/** @param project undefined: any; null: none. */
export function isOf(row: { readonly project: string | undefined }, project: string | null | undefined) {
  return project === undefined || (row.project ?? null) === project;
}
