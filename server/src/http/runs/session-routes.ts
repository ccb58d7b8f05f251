import { NotFound, SessionElsewhere } from "@ambit/core";
import type { SessionsResponse } from "@ambit/durable";
import { callersProjects } from "../../tenants/caller.js";
import { json } from "../response/send.js";
import { failed, jsonResponse } from "../route/responses.js";
import { type HttpRoute, type StoredRoute, stored, streaming } from "../route/route.js";
import type { EndedResponse } from "../route-schemas.js";
import { limit, onlyProject, projectFilter, sessionsProject } from "./parameters.js";
import { sendRunInfo } from "./run-routes.js";
import { timeOf } from "./stored-response.js";

/** The open sessions, and what becomes of them. */
export const sessionRoutes: readonly HttpRoute[] = [
  {
    method: "GET",
    path: "/sessions",
    query: [onlyProject, limit],
    refusesOthers: true,
    operation: {
      operationId: "sessions",
      tag: "Sessions",
      summary: "The open sessions of all replicas",
      description: "Each with the sandbox that it has, and the address of the replica that has it.",
      responses: { 200: jsonResponse("A page of them.", "SessionsResponse"), ...failed(400, 404, 503) },
    },
    handle: stored(handleSessions),
  },
  {
    method: "GET",
    path: "/sessions/{sessionId}/run",
    query: [onlyProject],
    refusesOthers: true,
    operation: {
      operationId: "sessionRun",
      tag: "Sessions",
      summary: "A session's newest run, as `GET /runs/{runId}` has it, also after the session has ended",
      description: "A page that knows only its chat finds the run that it follows this way.",
      responses: { 200: jsonResponse("The run.", "RunInfo"), ...failed(400, 404, 503) },
    },
    handle: stored(streaming(handleSessionRun)),
  },
  {
    method: "DELETE",
    path: "/sessions/{sessionId}",
    query: [sessionsProject],
    refusesOthers: true,
    operation: {
      operationId: "deleteSession",
      tag: "Sessions",
      summary: "Closes a session's sandbox and agent, and ends the run that uses it",
      description:
        "What the session kept is removed: its workspace, its home and its conversation. Snapshots of it stay. Runs that wait for it end as cancelled.",
      responses: {
        200: jsonResponse("The session has ended.", "EndedResponse"),
        ...failed(400, 404, 409, 503),
      },
    },
    handle: stored(handleDeleteSession),
  },
];

/** `GET /sessions` */
async function handleSessions(route: StoredRoute): Promise<Response> {
  const open = await route.server.runs.openSessions({
    ...projectFilter(route),
    limit: route.query.read(limit),
  });
  const sessions = open.map(({ session, project, sandbox, address, createdAt, usedAt }) => ({
    sessionId: session,
    projectId: project,
    sandbox,
    address,
    createdAt: timeOf(createdAt),
    usedAt: timeOf(usedAt),
  }));
  return json(200, { sessions } satisfies SessionsResponse);
}

/** `DELETE /sessions/:sessionId`: closes its sandbox and agent, and the runs that use it or wait for it. */
async function handleDeleteSession(route: StoredRoute): Promise<Response> {
  const session = route.path("sessionId");
  const { context, server, exchange } = route;
  const name = { session, project: projectFilter(route).project ?? undefined };
  const { runs, queue } = server;
  if (!context.runner.hasSession(name)) {
    // What a lost replica has left is freed for the run that waits for it.
    const abandoned = await runs.sessions.endAbandoned(name);
    if (abandoned !== undefined) {
      await context.runner.discardSession(abandoned, name.project);
      return json(200, { ok: true, ended: true } satisfies EndedResponse);
    }
    const elsewhere = await runs.sessions.addressOf(session, name.project);
    if (elsewhere !== undefined) throw new SessionElsewhere(session, elsewhere);
  }
  if (!(await queue.endSession(name))) {
    const fix =
      callersProjects(exchange.incoming) === "all"
        ? "send ?projectId= with the project of its runs, unless it has ended already"
        : "it has ended already, or never began";
    throw new NotFound(`There is no session ${JSON.stringify(session)}: ${fix}.`);
  }
  await runs.asking(() => runs.sessions.closed(name));
  return json(200, { ok: true, ended: true } satisfies EndedResponse);
}

/** `GET /sessions/:sessionId/run` */
async function handleSessionRun(route: StoredRoute): Promise<void> {
  const session = route.path("sessionId");
  const filter = projectFilter(route);
  const [newest] = await route.server.runs.store.list({ ...filter, session, limit: 1 });
  if (newest === undefined)
    throw new NotFound(
      `There is no run of the session ${JSON.stringify(session)}: they were deleted, or never began.`,
    );
  await sendRunInfo(route, newest);
}
