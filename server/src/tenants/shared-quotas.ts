import { AtCapacity } from "@ambit/core";
import type { RecordedRuns } from "@ambit/durable";
import type { ProjectUsage, RunQuota } from "@ambit/durable/store";
import { type Principal, tenantOf } from "./caller.js";
import type { Tenant } from "./schema.js";

/** Tiers of preference among projects in one search of the queue. */
const maxTiers = 4;
/** Open sessions that are counted at a time. */
const maxSessions = 10_000;

/** The projects' usage of their quotas, over all replicas of a store. */
export class SharedQuotas {
  readonly #tenants: ReadonlyMap<string, Tenant>;

  constructor(
    readonly runs: Pick<RecordedRuns, "store" | "openSessions">,
    tenants: readonly Tenant[],
  ) {
    // The first one of several tokens of a project counts.
    this.#tenants = new Map(tenants.toReversed().map((tenant) => [tenant.project, tenant]));
  }

  /** Why no run of the caller may begin now; undefined if one may. */
  async refusal(caller: Principal): Promise<AtCapacity | undefined> {
    const [project, quota] = [tenantOf(caller), this.quotaOf(caller)];
    if (project === undefined || quota === undefined) return undefined;
    const [usage] = await this.runs.store.usage([project]);
    const wait = usage && waitFor(usage, quota);
    return wait && new AtCapacity(`The project has reached its quota: ${wait.why}.`, wait.ms);
  }

  /** Why the caller's request can't have this session; undefined if it can. @param session as the request was read. */
  async refusalOfSession(caller: Principal, session: string | undefined): Promise<AtCapacity | undefined> {
    if (caller.kind === "operator" || (await this.#hasRoomFor(session, caller.tenant))) return undefined;
    const { sessions } = caller.tenant.limits;
    return new AtCapacity(`The project has reached its quota: ${sessions} open sessions. End one of them.`);
  }

  async #hasRoomFor(session: string | undefined, { project, limits }: Tenant): Promise<boolean> {
    const { sessions } = limits;
    if (sessions === undefined || session === undefined) return true;
    const open = await this.runs.openSessions({ project, limit: sessions + 1 });
    return open.length < sessions || open.some((one) => one.session === session);
  }

  /** What these tenants' projects may use, and what they use now, over all replicas. */
  async used(projects: readonly string[]): Promise<readonly UsedQuotas[]> {
    const [usage, sessions] = await Promise.all([
      this.runs.store.usage(projects),
      this.runs.openSessions({
        ...(projects.length === 1 ? { project: projects[0] } : {}),
        limit: maxSessions,
      }),
    ]);
    const open = Map.groupBy(sessions, ({ project }) => project);
    return usage.map(({ project, running, begun, usd, dayLeftMs }) => {
      const { concurrentRuns, runsPerMinute, usdPerDay, ...limits } =
        this.#tenants.get(project)?.limits ?? {};
      return {
        projectId: project,
        concurrentRuns: usedOf(concurrentRuns, running),
        runsPerMinute: usedOf(runsPerMinute, begun),
        sessions: usedOf(limits.sessions, open.get(project)?.length ?? 0),
        usdPerDay: usedOf(usdPerDay, usd),
        dayLeftMs,
      };
    });
  }

  /** The open sessions that the store allows when it binds one. */
  sessionsOf(caller: Principal): number | undefined {
    return caller.kind === "operator" ? undefined : caller.tenant.limits.sessions;
  }

  /** The same for a queued run, of which only the project is known. */
  sessionsOfProject(project: string | undefined): number | undefined {
    return project === undefined ? undefined : this.#tenants.get(project)?.limits.sessions;
  }

  /** The quota that the store checks when it creates the run. */
  quotaOf(caller: Principal): RunQuota | undefined {
    if (caller.kind === "operator") return undefined;
    const { sessions: _, ...quota } = caller.tenant.limits;
    return Object.values(quota).some((limit) => limit !== undefined) ? quota : undefined;
  }

  /**
   * Projects whose queued runs don't begin now, in one list after the other: first all but those with the fewest runs
   * under way, at last only those at their quota.
   */
  async excludedInTurn(): Promise<readonly (readonly string[])[]> {
    const usage = await this.runs.store.usage([...this.#tenants.keys()]);
    const isFull = (one: ProjectUsage) => {
      const limits = this.#tenants.get(one.project)?.limits;
      return limits !== undefined && waitFor(one, limits) !== undefined;
    };
    const full = usage.filter(isFull);
    const able = usage.filter((one) => !full.includes(one));
    // Other projects have no count, and come first together with those that have no run in progress.
    const levels = [...new Set([0, ...able.map(({ running }) => running)])].toSorted((one, two) => one - two);
    const tiers = [...levels.slice(0, maxTiers - 1), ...levels.slice(maxTiers - 1).slice(-1)];
    return tiers.map((level) =>
      [...full, ...able.filter(({ running }) => running > level)].map(({ project }) => project),
    );
  }
}

interface UsedQuota {
  readonly limit: number;
  readonly used: number;
}

/** A project's quotas. Undefined: it has no such quota. */
interface UsedQuotas {
  readonly projectId: string;
  readonly concurrentRuns: UsedQuota | undefined;
  readonly runsPerMinute: UsedQuota | undefined;
  readonly sessions: UsedQuota | undefined;
  readonly usdPerDay: UsedQuota | undefined;
  /** Milliseconds until that day ends. */
  readonly dayLeftMs: number;
}

const usedOf = (limit: number | undefined, used: number): UsedQuota | undefined =>
  limit === undefined ? undefined : { limit, used };

/** Which quota is used up, and when a run may succeed. Undefined: there is room for one. Pure. */
function waitFor(
  { running, begun, minuteLeftMs, usd, dayLeftMs }: ProjectUsage,
  { concurrentRuns, runsPerMinute, usdPerDay }: RunQuota,
): { readonly why: string; readonly ms: number } | undefined {
  if (usdPerDay !== undefined && usd >= usdPerDay)
    return { why: `${usdPerDay} US dollars a day`, ms: dayLeftMs };
  if (runsPerMinute !== undefined && begun >= runsPerMinute)
    return { why: `${runsPerMinute} runs a minute`, ms: minuteLeftMs };
  if (concurrentRuns !== undefined && running >= concurrentRuns)
    return { why: `${concurrentRuns} concurrent runs`, ms: 1_000 };
  return undefined;
}
