import type { ProjectUsage, RunQuota } from "../store/index.js";

const minuteMs = 60_000;
const dayMs = 86_400_000;

interface Usage {
  /** When the runs of the last minute began. */
  begun: number[];
  /** The day of UTC that `usd` was spent on. */
  day: number;
  usd: number;
}

/** What projects with quotas have used. Counted from a project's first run with a quota. */
export class Usages {
  readonly #usage = new Map<string, Usage>();

  /** @param running the number of a project's runs in progress. */
  constructor(readonly running: (project: string) => number) {}

  of(project: string): ProjectUsage {
    const now = Date.now();
    const { begun, usd } = this.#current(project, now) ?? { begun: [], usd: 0 };
    const [oldest] = begun;
    return {
      project,
      usd,
      running: this.running(project),
      begun: begun.length,
      minuteLeftMs: oldest === undefined ? 0 : oldest + minuteMs - now,
      dayLeftMs: dayMs - (now % dayMs),
    };
  }

  /** Whether the project's quota has room for a run. From now on the project is counted. */
  hasRoom(project: string, quota: RunQuota): boolean {
    if (!this.#usage.has(project)) this.#usage.set(project, { begun: [], day: 0, usd: 0 });
    const { running, begun, usd } = this.of(project);
    const { concurrentRuns = Infinity, runsPerMinute = Infinity, usdPerDay = Infinity } = quota;
    return running < concurrentRuns && begun < runsPerMinute && usd < usdPerDay;
  }

  began(project: string | undefined): void {
    const now = Date.now();
    if (project !== undefined) this.#current(project, now)?.begun.push(now);
  }

  spent(project: string | undefined, usd: number): void {
    const usage = project === undefined ? undefined : this.#current(project, Date.now());
    if (usage !== undefined) usage.usd += usd;
  }

  /** Without what has expired. */
  #current(project: string, now: number): Usage | undefined {
    const usage = this.#usage.get(project);
    if (usage === undefined) return undefined;
    const day = Math.floor(now / dayMs);
    if (usage.day !== day) Object.assign(usage, { day, usd: 0 });
    while (usage.begun[0] !== undefined && usage.begun[0] <= now - minuteMs) usage.begun.shift();
    return usage;
  }
}
