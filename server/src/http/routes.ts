import { limits, projectOf, type Registry, RequestInvalid } from "@ambit/core";
import { type JsonObject, type RunRequestSchema, runRequestSchema } from "@ambit/core/contract";
import { validBody } from "@ambit/core/plugin";
import { planResponse } from "../results.js";
import { callersProjects } from "../tenants/caller.js";
import { callerOptions, requireOperator } from "./caller/admit-caller.js";
import { healthAnswer, readyAnswer } from "./health/answers.js";
import { hostRoute } from "./host-route.js";
import { sendMetrics } from "./metrics.js";
import { documentOf } from "./openapi-document.js";
import { handleMakeToken } from "./pages/make-token.js";
import { json, send } from "./response/send.js";
import {
  body,
  failed,
  failedResponse,
  jsonResponse,
  reference,
  retryAfter,
  runOperation,
} from "./route/responses.js";
import { type HttpRoute, streaming } from "./route/route.js";
import { type EndedResponse, killRequestSchema, type SubscriptionStatus } from "./route-schemas.js";
import { handleRun } from "./runs/begin-run.js";
import { deliveryRoutes } from "./runs/delivery-routes.js";
import { answerRoutes, interactionRoutes } from "./runs/interaction-routes.js";
import { outputRoutes } from "./runs/output-routes.js";
import { runCommandRoutes, runRoutes } from "./runs/run-routes.js";
import { sessionRoutes } from "./runs/session-routes.js";
import { usageRoutes } from "./runs/usage-routes.js";
import type { Exchange, ServerContext } from "./server-context.js";
import { terminalRoutes } from "./sessions/terminal-routes.js";
import { workspaceRoutes } from "./sessions/workspace-routes.js";
import { snapshotRoutes } from "./snapshots/routes.js";

/** Every route of the server. */
export const routes: readonly HttpRoute[] = [
  {
    method: "POST",
    path: "/run",
    beginsRuns: "json",
    operation: runOperation({
      operationId: "run",
      tag: "Runs",
      summary: "Runs one turn of an agent, and returns its result",
      description:
        "With `Accept: application/x-ndjson` or `text/event-stream` it answers as `POST /stream` does. The header `x-ambit-run-id` has the run's id; a caller that gave none learns it with the result.",
      content: { "application/json": { schema: reference("RunResult") } },
    }),
    handle: ({ context, exchange }) => handleRun(context, exchange, "json"),
  },
  {
    method: "POST",
    path: "/stream",
    beginsRuns: "ndjson",
    operation: runOperation({
      operationId: "stream",
      tag: "Runs",
      summary: "Runs one turn of an agent, and streams its events",
      description:
        "Events, then exactly one `result` record in every case: a refused or failed run is such a record too, with the status 200. NDJSON, unless `Accept` asks for `text/event-stream`; with `Accept: application/json` it answers as `POST /run` does. The header `x-ambit-run-id` has the run's id.",
      content: {
        "application/x-ndjson": { schema: reference("StreamRecord") },
        "text/event-stream": { schema: reference("StreamRecord") },
      },
    }),
    handle: ({ context, exchange }) => handleRun(context, exchange, "ndjson"),
  },
  {
    method: "POST",
    path: "/plan",
    operation: {
      operationId: "plan",
      tag: "Runs",
      summary: "Decides whether a request could run, without side effects",
      description:
        "Answers with the sandbox, the guarantees and the actors that a run of this request would have, or with every gap and its fix. Nothing is started, and nothing is stored.",
      requestBody: body("RunRequest", false),
      responses: {
        200: jsonResponse("The plan, accepted.", "PlanResponse"),
        ...failed(400, 408, 413, 422, 503),
      },
    },
    handle: async ({ context, exchange: { incoming } }) => {
      const request = await context.bodies.json(incoming, limits.bodyBytes);
      return json(200, planResponse(await context.runner.plan(request, callerOptions(incoming))));
    },
  },
  {
    method: "POST",
    path: "/kill",
    operation: {
      operationId: "kill",
      tag: "Sessions",
      summary: "Ends a session, and the run that uses it",
      description:
        "The session loses its sandbox and its agent, and the runs that use it or wait for it end as cancelled. Ending it twice is no error: `ended` says whether there was one.",
      requestBody: body("KillRequest", true),
      responses: {
        200: jsonResponse("The session has ended.", "EndedResponse"),
        ...failed(400, 408, 413, 503),
      },
    },
    handle: ({ context, exchange }) => handleKill(context, exchange),
  },
  {
    method: "POST",
    path: "/cancel",
    operation: {
      operationId: "cancelTurn",
      tag: "Sessions",
      summary: "Stops the turn of a session, which stays",
      description:
        "The run that the session has now is cancelled, and still returns its one result. A command that is sent again, by its `id`, gets the same answer.",
      requestBody: body("CancelTurnRequest", true),
      responses: {
        200: jsonResponse("Whether a turn was stopped.", "CancelTurnResponse"),
        ...failed(400, 404, 408, 413),
      },
    },
    handle: ({ context, exchange }) => context.cancellation.handle(context, exchange),
  },
  {
    method: "POST",
    path: "/tokens",
    operation: {
      operationId: "makeToken",
      tag: "Tokens",
      summary: "Makes a token for a page in a user's browser, bound to one session",
      description:
        "Such a token opens nothing else: a page reads the session's runs, answers their questions, and begins runs that bring only `sessionId`, `messages` and `runId`, as far as `may` says. An EventSource or an image sends it as `?token=`.",
      requestBody: body("TokenRequest", true),
      responses: {
        200: jsonResponse("The token. It isn't stored, and ends by itself.", "TokenResponse"),
        ...failed(400, 408, 413, 422, 503),
      },
    },
    handle: handleMakeToken,
  },
  ...runRoutes,
  ...outputRoutes,
  ...runCommandRoutes,
  ...answerRoutes,
  ...deliveryRoutes,
  ...usageRoutes,
  ...interactionRoutes,
  ...sessionRoutes,
  ...workspaceRoutes,
  ...terminalRoutes,
  ...snapshotRoutes,
  {
    method: "GET",
    path: "/plugins",
    operation: {
      operationId: "plugins",
      tag: "Server",
      summary: "The loaded plugins, their claims, and what was proven on this host",
      description: "What a probe showed has its time, and what it couldn't show has the reason and the fix.",
      responses: { 200: jsonResponse("Every actor.", "PluginsResponse"), ...failed() },
    },
    handle: async ({ context }) => json(200, { actors: await context.runner.registry.describe() }),
  },
  hostRoute,
  {
    method: "GET",
    path: "/metrics",
    operation: {
      operationId: "metrics",
      tag: "Server",
      summary: "Figures for Prometheus, where a plugin counts them",
      description: "Only for the operator: the figures are of all projects.",
      responses: {
        200: {
          description: "The Prometheus text format, version 0.0.4.",
          content: { "text/plain": { schema: { type: "string" } } },
        },
        ...failed(404),
      },
    },
    handle: streaming(async ({ context, exchange: { incoming, outgoing } }) => {
      requireOperator(incoming);
      await sendMetrics(outgoing, context);
    }),
  },
  {
    method: "GET",
    path: "/subscription-status",
    operation: {
      operationId: "subscriptionStatus",
      tag: "Server",
      summary: "The loaded harnesses; none of them uses a login of the runner",
      description:
        "For platforms that ask which agents have a login: here a run brings its credential in `modelConnection`.",
      responses: { 200: jsonResponse("Every harness.", "SubscriptionStatus"), ...failed() },
    },
    handle: ({ context }) => json(200, subscriptionStatus(context.runner.registry)),
  },
  {
    method: "GET",
    path: "/health",
    token: "none",
    operation: {
      operationId: "health",
      tag: "Server",
      summary: "Whether the server is up",
      description:
        "It needs no token. A process that answers lives; `GET /ready` says whether to send it runs.",
      responses: { 200: jsonResponse("It does.", "HealthResponse"), 403: failedResponse(403) },
    },
    handle: ({ context: { probing, replicaId } }) => {
      const { status, body } = healthAnswer({ probing: probing(), replicaId });
      return json(status, body);
    },
  },
  {
    method: "GET",
    path: "/ready",
    token: "none",
    operation: {
      operationId: "ready",
      tag: "Server",
      summary: "Whether the server takes runs now: it has started, doesn't shut down, and its store answers",
      description: "It needs no token. `status` says why it takes none.",
      responses: {
        200: jsonResponse("It does.", "ReadyResponse"),
        403: failedResponse(403),
        503: {
          ...jsonResponse("It doesn't: send runs to another replica, or later.", "ReadyResponse"),
          headers: retryAfter,
        },
      },
    },
    handle: async ({ context }) => {
      const { status, body } = readyAnswer(await context.readiness.look());
      return json(status, body);
    },
  },
  {
    method: "GET",
    path: "/openapi.json",
    token: "none",
    operation: {
      operationId: "openapi",
      tag: "Server",
      summary: "This document",
      description:
        "Made from the schemas that validate, with the routes and the fields that this server's plugins add.",
      responses: {
        200: {
          description: "This document.",
          content: { "application/json": { schema: { type: "object" } } },
        },
        403: failedResponse(403),
      },
    },
    handle: streaming(async ({ context, exchange }) =>
      send(exchange.outgoing, 200, "application/json", context.documentText()),
    ),
  },
];

/**
 * The OpenAPI 3.1 document of the server.
 *
 * @param request the schema of requests, with the fields of the loaded dialects. Default: the contract alone.
 */
export function openApiDocument(version: string, request: RunRequestSchema = runRequestSchema): JsonObject {
  return documentOf(routes, version, request);
}

/** The response of `GET /subscription-status`. Waits for no probe, since callers request it while a page loads. */
function subscriptionStatus(registry: Registry): SubscriptionStatus {
  const further = registry.dialects.flatMap(({ harnesses = {} }) => Object.entries(harnesses));
  const names = registry
    .knownCandidates()
    .harnesses.flatMap(({ actor: { id, aliases } }) => [
      id,
      ...aliases,
      ...further.flatMap(([name, meant]) => (meant === id ? [name] : [])),
    ]);
  return {
    version: 1,
    harnesses: Object.fromEntries(names.map((name) => [name, { state: "not_configured" as const }])),
  };
}

/** Bytes of the body, which holds two short names. */
const killLimit = 16 * 1024;

/** `POST /kill`: ends a session, and the runs that use it or wait for it. Ending it twice isn't an error; the response says so. */
async function handleKill({ log, bodies, served }: ServerContext, { incoming }: Exchange): Promise<Response> {
  const { sessionId, projectId } = validBody(killRequestSchema, await bodies.json(incoming, killLimit));
  const projects = callersProjects(incoming);
  if (projects !== "all" && (projectId ?? projects) !== projects) {
    const message = "is not the project of this token: leave it out";
    throw new RequestInvalid([{ path: "projectId", message }]);
  }
  const project = projects === "all" ? (projectId ?? undefined) : projects;
  const { queue } = await served();
  const ended = await queue.endSession({ session: sessionId, project: projectOf({ projectId: project }) });
  const message = ended ? undefined : nothingEnded(sessionId, projectId, projects !== "all");
  if (message !== undefined) log.info({ sessionId, projectId }, "there was no session to end");
  return json(200, { ok: true, ended, message } satisfies EndedResponse);
}

function nothingEnded(sessionId: string, projectId: string | null | undefined, isTenant: boolean): string {
  const session = JSON.stringify(sessionId);
  if (isTenant) return `There is no session ${session}: it has ended already, or never began.`;
  const fix =
    "send the projectId of its runs (their projectId, or else their runContext.project.id), unless it has ended already";
  if (projectOf({ projectId: projectId ?? undefined }) === undefined)
    return `There is no session ${session} without a project: ${fix}.`;
  return `There is no session ${session} of the project ${JSON.stringify(projectId)}: ${fix}.`;
}
