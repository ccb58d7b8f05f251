import { AtCapacity } from "@ambit/core";
import type { Tenant } from "./schema.js";

const minuteMs = 60_000;
const dayMs = 86_400_000;

interface Usage {
  running: number;
  /** When the runs of the last minute began. */
  begun: number[];
  /** The day of UTC that `usd` was spent on. */
  day: number;
  usd: number;
}

/** A place within a project's quotas. */
export interface QuotaPlace {
  /** The run has ended, or never began. Safe to call twice. @param usd what it cost. */
  release(usd?: number): void;
}

/** What each project has used of its quotas, on this server. */
export class Quotas {
  readonly #usage = new Map<string, Usage>();

  constructor(readonly now: () => number = Date.now) {}

  /**
   * Takes a place for a run.
   * @param opensSession whether it would open a named session, beside `sessions` open ones.
   * @throws AtCapacity with the time after which it may succeed
   */
  take(
    { project, limits }: Pick<Tenant, "project" | "limits">,
    opensSession: boolean,
    sessions: number,
  ): QuotaPlace {
    const usage = this.#of(project);
    const wait = this.#waitMs(usage, limits);
    if (wait !== undefined) throw new AtCapacity(`Project at its quota: ${wait.why}.`, wait.ms);
    if (opensSession && limits.sessions !== undefined && sessions >= limits.sessions)
      throw new AtCapacity(`Project at its quota: ${limits.sessions} open sessions. End one of them.`);
    return this.occupy({ project, limits });
  }

  /** Takes a place whatever the quotas say. */
  occupy({ project, limits }: Pick<Tenant, "project" | "limits">): QuotaPlace {
    const usage = this.#of(project);
    usage.running += 1;
    if (limits.runsPerMinute !== undefined) usage.begun.push(this.now());
    let release = (usd: number) => {
      usage.running -= 1;
      this.#of(project).usd += usd;
      release = () => {};
    };
    return { release: (usd = 0) => release(usd) };
  }

  /** Whether a run of the project could begin now. */
  hasRoom({ project, limits }: Tenant): boolean {
    return this.#waitMs(this.#of(project), limits) === undefined;
  }

  /** Runs of the project that are under way. */
  running(project: string): number {
    return this.#usage.get(project)?.running ?? 0;
  }

  #waitMs(usage: Usage, { concurrentRuns, runsPerMinute, usdPerDay }: Tenant["limits"]) {
    const now = this.now();
    if (usdPerDay !== undefined && usage.usd >= usdPerDay)
      return { why: `${usdPerDay} US dollars a day`, ms: dayMs - (now % dayMs) };
    const [oldest] = usage.begun;
    if (runsPerMinute !== undefined && usage.begun.length >= runsPerMinute && oldest !== undefined)
      return { why: `${runsPerMinute} runs a minute`, ms: oldest + minuteMs - now };
    if (concurrentRuns !== undefined && usage.running >= concurrentRuns)
      return { why: `${concurrentRuns} concurrent runs`, ms: 1_000 };
    return undefined;
  }

  /** As it is now: without what is past. */
  #of(project: string): Usage {
    const now = this.now();
    const day = Math.floor(now / dayMs);
    const usage = this.#usage.get(project) ?? { running: 0, begun: [], day, usd: 0 };
    this.#usage.set(project, usage);
    if (usage.day !== day) {
      usage.day = day;
      usage.usd = 0;
    }
    while (usage.begun[0] !== undefined && usage.begun[0] <= now - minuteMs) usage.begun.shift();
    return usage;
  }
}
