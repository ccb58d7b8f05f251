import { idOfRun, NotFound, RequestInvalid, runKey, SessionElsewhere } from "@ambit/core";
import type { StoredRun } from "@ambit/durable/store";
import { type Caller, callerOf, isVisibleTo } from "../../tenants/caller.js";
import { answerSignal } from "../response/send.js";
import type { RouteCall, StoredRoute } from "../route/route.js";
import type { ServerContext } from "../server-context.js";
import { onlyRun, projectFilter, runsProject } from "./parameters.js";

/** How a caller names a run. */
interface NamedRun {
  /** As on the wire. */
  readonly id: string;
  readonly caller: Caller;
  /** Of `?projectId=`, by which the operator tells runs of several tenants apart. */
  readonly projectId?: string | undefined;
}

/**
 * The keys that this may be: runs of each tenant have ids of their own, and so have the operator's. A tenant also sees
 * those that the operator began in its project.
 */
function keysOf({ id, caller, projectId }: NamedRun, tenants: readonly string[]): readonly string[] {
  if (caller.kind === "tenant") return [runKey(id, caller.tenant.project), id];
  if (caller.kind === "page") {
    const { project, scope } = caller.grant;
    if (scope.kind === "file") return [scope.runKey].filter((key) => idOfRun(key) === id);
    return project === undefined ? [id] : [runKey(id, project), id];
  }
  const named = projectId === undefined ? tenants : [projectId];
  return [id, ...named.map((project) => runKey(id, project))];
}

/** The run among those with these keys that its caller means. @throws NotFound, RequestInvalid where there are several */
function theOne<Row extends Pick<StoredRun, "id" | "project" | "session">>(
  { id, caller, projectId }: NamedRun,
  found: readonly Row[],
): Row {
  const [run, other] = found.filter(
    (one) => isVisibleTo(caller, one) && (projectId === undefined || one.project === projectId),
  );
  if (run === undefined) throw noRun(id);
  // A tenant's own comes first.
  if (other === undefined || caller.kind !== "operator") return run;
  const message = `is needed: several projects have a run '${id}'`;
  throw new RequestInvalid([{ path: "projectId", message }]);
}

export const noRun = (id: string) =>
  new NotFound(`There is no run '${id}': it was deleted, or never started.`);

/**
 * A run that this caller may see, without its result.
 * @throws NotFound for any other, without revealing that it exists; RequestInvalid
 */
export function visibleRun(route: StoredRoute, id: string): Promise<StoredRun> {
  return runNamed(route, namedIn(route, id));
}

/**
 * The last run of a list's page: by its id, or by `project/id`, since a list may have runs of several projects with one id,
 * and of projects that have no token any more.
 * @throws NotFound, RequestInvalid
 */
export function lastRun(route: StoredRoute, after: string): Promise<StoredRun> {
  const slash = after.lastIndexOf("/");
  if (slash === -1) return visibleRun(route, after);
  const named = namedIn(route, after.slice(slash + 1));
  return runNamed(route, { ...named, projectId: after.slice(0, slash) });
}

async function runNamed({ server, exchange, context }: StoredRoute, named: NamedRun): Promise<StoredRun> {
  const keys = keysOf(named, context.tenants.projects);
  const waits = answerSignal(exchange.outgoing, server.runs.options.settings.answerTimeoutMs);
  // A server has few tenants or many: their keys are looked up together.
  const heads = keys.length > 2 ? await server.runs.store.heads(keys) : undefined;
  const stored = heads === undefined ? keys : keys.filter((key) => heads.some((head) => head.id === key));
  const runs = await Promise.all(stored.map((key) => server.runs.summary(key, waits)));
  return theOne(
    named,
    runs.filter((run) => run !== undefined),
  );
}

/** `?runId=` of a list. */
export async function runFilter(route: StoredRoute): Promise<{ readonly runId?: string }> {
  const id = route.query.read(onlyRun);
  if (id === undefined) return {};
  try {
    return { runId: (await visibleRun(route, id)).id };
  } catch (error) {
    // Messages may outlive their run.
    if (error instanceof NotFound) return { runId: keysOf(namedIn(route, id), [])[0] ?? id };
    throw error;
  }
}

function namedIn({ exchange, query }: StoredRoute, id: string): NamedRun {
  return {
    id,
    caller: callerOf(exchange.incoming),
    projectId: query.read(runsProject) || undefined,
  };
}

/** The project of the caller; for the operator, the one that the query names. */
export function projectIn(call: Pick<RouteCall, "query" | "exchange">): string | undefined {
  return projectFilter(call).project ?? undefined;
}

/** Why a session isn't open here. @throws SessionElsewhere, NotFound */
export async function refuseAbsent(
  context: ServerContext,
  session: string,
  project: string | undefined,
): Promise<never> {
  const { runs } = await context.served();
  const elsewhere = await runs.sessions.addressOf(session, project);
  if (elsewhere !== undefined) throw new SessionElsewhere(session, elsewhere);
  throw new NotFound(
    `There is no session ${JSON.stringify(session)} here: it has ended already, or never began; the operator names its project by ?projectId=.`,
  );
}
