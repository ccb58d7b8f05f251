import { AtCapacity } from "@ambit/core";
import { waitFor } from "./quota-wait.js";
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

/** A slot within a project's quotas. */
export interface QuotaPlace {
  /** Called when the run has ended, or never began. Safe to call twice. @param usd its cost. */
  release(usd?: number): void;
}

/** Each project's usage of its quotas, on a server without a store. */
export class Quotas {
  readonly #usage = new Map<string, Usage>();

  constructor(readonly now: () => number = Date.now) {}

  /**
   * Takes a slot for a run.
   * @param opensSession whether it would open a named session, in addition to `sessions` open ones.
   * @throws AtCapacity with the time after which it may succeed
   */
  take(
    { project, limits }: Pick<Tenant, "project" | "limits">,
    opensSession: boolean,
    sessions: number,
  ): QuotaPlace {
    const usage = this.#of(project);
    const wait = this.#wait(usage, limits);
    if (wait !== undefined) throw new AtCapacity(`Project at its quota: ${wait.why}.`, wait.ms);
    if (opensSession && limits.sessions !== undefined && sessions >= limits.sessions)
      throw new AtCapacity(`Project at its quota: ${limits.sessions} open sessions. End one of them.`);
    usage.running += 1;
    if (limits.runsPerMinute !== undefined) usage.begun.push(this.now());
    let release = (usd: number) => {
      usage.running -= 1;
      this.#of(project).usd += usd;
      release = () => {};
    };
    return { release: (usd = 0) => release(usd) };
  }

  #wait({ running, begun, usd }: Usage, limits: Tenant["limits"]) {
    const now = this.now();
    const [oldest = now] = begun;
    const [minuteLeftMs, dayLeftMs] = [oldest + minuteMs - now, dayMs - (now % dayMs)];
    return waitFor({ running, begun: begun.length, minuteLeftMs, usd, dayLeftMs }, limits);
  }

  /** The current usage, without entries that have expired. */
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
