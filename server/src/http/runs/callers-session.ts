import { NotFound, SessionElsewhere } from "@ambit/core";
import type { RouteCall } from "../route/route.js";
import type { Exchange, ServerContext } from "../server-context.js";
import { projectFilter } from "./parameters.js";
import { callersProjects } from "./projects.js";

/** The project of the caller; for the operator, the one that the query names. */
export function projectIn({
  query,
  exchange,
}: Pick<RouteCall<ServerContext, Exchange>, "query" | "exchange">): string | undefined {
  return projectFilter(query, callersProjects(exchange.incoming)).project ?? undefined;
}

/** Why a session isn't open here. @throws SessionElsewhere, NotFound */
export async function refuseAbsent(
  context: ServerContext,
  session: string,
  project: string | undefined,
): Promise<never> {
  const { runs } = await context.served();
  const elsewhere = await runs.asking(() => runs.sessions.addressOf(session, project));
  if (elsewhere !== undefined) throw new SessionElsewhere(session, elsewhere);
  throw new NotFound(
    `There is no session ${JSON.stringify(session)} here: it has ended already, or never began; the operator names its project by ?projectId=.`,
  );
}
