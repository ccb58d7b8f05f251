import type { IncomingMessage } from "node:http";
import { limits, NotFound } from "@ambit/core";
import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Handler, Hono } from "hono";
import { planResponse } from "../plan-response.js";
import { subscriptionStatus } from "../subscription-status.js";
import { callerOf } from "../tenants/caller.js";
import { admitCaller, requireOperator } from "./caller/admit-caller.js";
import { callerOptions, callersTrace } from "./caller/caller-options.js";
import { requireLocalCaller } from "./caller/loopback.js";
import { TurnCancellation } from "./cancel-turn.js";
import { sendMetrics } from "./metrics.js";
import { openApiDocument } from "./openapi/document.js";
import { Readiness } from "./ready.js";
import { HttpRefusal, isOurFault, refusalOf, sendRefusal } from "./response/refusal.js";
import { type ResponseFormat, responseFormat } from "./response/response-format.js";
import { send, sendJson } from "./response/send.js";
import type { HealthResponse, ReadyResponse } from "./route-schemas.js";
import { handleRun } from "./run-route.js";
import { storedRoutes } from "./runs/routes.js";
import type { Exchange, ServerContext } from "./server-context.js";
import { handleKill } from "./session-routes.js";

type Environment = { Bindings: HttpBindings };
type Route = (exchange: Exchange, parameter: (name: string) => string) => void | Promise<void>;

/** Routes without a token: they only say that the server is up, and describe its API. */
const open = new Set(["/health", "/ready", "/openapi.json"]);

/** Routes that begin runs, each with its default response format. */
const runRoutes: ReadonlyMap<string, ResponseFormat> = new Map([
  ["/run", "json"],
  ["/stream", "ndjson"],
]);

/** The routes, behind the checks that precede any work: the caller (403, 401), then whether the route exists. */
export function serverApp(context: ServerContext): Hono<Environment> {
  const { runner, log, loopback, allowedHosts } = context;
  const app = new Hono<Environment>();

  /** Milliseconds since 1970. */
  const arrivals = new WeakMap<IncomingMessage, number>();
  app.use(async ({ env, req }, next) => {
    const { headers } = env.incoming;
    arrivals.set(env.incoming, Date.now());
    if (loopback) requireLocalCaller(headers, allowedHosts);
    if (!open.has(req.path)) {
      await admitCaller(env.incoming, context);
      const caller = callerOf(env.incoming);
      const owner = caller.kind === "tenant" ? { project: caller.tenant.project } : "operator";
      context.connections.admit(env.incoming.socket, owner);
    }
    await next();
  });

  const on = (method: "GET" | "POST", path: string, route: Route) => {
    app.on(method, path, handler(route));
    app.all(path, () => {
      throw new HttpRefusal(405, `Use ${method} ${path}.`, "not_found", { allow: method });
    });
  };
  for (const [path, byDefault] of runRoutes) {
    on("POST", path, (exchange) => handleRun(context, exchange, byDefault));
  }
  on("POST", "/plan", async ({ incoming, outgoing }) => {
    const body = await context.bodies.json(incoming, limits.bodyBytes);
    sendJson(outgoing, 200, planResponse(await runner.plan(body, callerOptions(incoming))));
  });
  on("POST", "/kill", (exchange) => handleKill(context, exchange));
  const cancellation = new TurnCancellation(runner);
  on("POST", "/cancel", (exchange) => cancellation.handle(context, exchange));
  for (const [path, methods] of Object.entries(storedRoutes(context))) {
    for (const [method, route] of Object.entries(methods)) app.on(method, path, handler(route));
    const allowed = Object.keys(methods).join(", ");
    app.all(path, () => {
      throw new HttpRefusal(405, `Use ${allowed} ${path}.`, "not_found", { allow: allowed });
    });
  }
  on("GET", "/plugins", async ({ outgoing }) => {
    sendJson(outgoing, 200, { actors: await runner.registry.describe() });
  });
  on("GET", "/metrics", ({ incoming, outgoing }) => {
    requireOperator(incoming);
    return sendMetrics(outgoing, context);
  });
  on("GET", "/subscription-status", ({ outgoing }) =>
    sendJson(outgoing, 200, subscriptionStatus(runner.registry)),
  );
  on("GET", "/health", ({ outgoing }) => {
    sendJson(outgoing, 200, {
      status: "ok",
      probing: context.probing(),
      replicaId: context.replicaId,
    } satisfies HealthResponse);
  });
  const readiness = new Readiness(context);
  on("GET", "/ready", async ({ outgoing }) => {
    const ready = await readiness.look();
    sendJson(outgoing, ready.status === "ready" ? 200 : 503, ready satisfies ReadyResponse);
  });
  // It needs no token, and to make it takes 20 ms.
  let document: string | undefined;
  on("GET", "/openapi.json", ({ outgoing }) => {
    document ??= JSON.stringify(openApiDocument(context.version));
    send(outgoing, 200, "application/json", document);
  });

  app.notFound(() => {
    throw new NotFound("Not found");
  });
  app.onError((error, { env: { incoming, outgoing }, req }) => {
    if (outgoing.destroyed) log.debug({ error }, "the caller left before it was answered");
    else if (isOurFault(error)) log.error({ error }, "a request could not be answered");
    const byDefault = runRoutes.get(req.path);
    const form = byDefault === undefined ? "json" : responseFormat(incoming.headers.accept, byDefault);
    const refusal = refusalOf(error);
    if (byDefault !== undefined && !outgoing.destroyed) {
      const { status } = refusal;
      const begunAt = arrivals.get(incoming) ?? Date.now();
      runner.refused(refusal.body.failure, { status, begunAt, error, trace: callersTrace(incoming) });
    }
    sendRefusal(outgoing, form, refusal);
    return RESPONSE_ALREADY_SENT;
  });
  return app;
}

/** Runs a route that answers on the response itself. */
function handler(route: Route): Handler<Environment> {
  return async ({ env, req }) => {
    await route(env, (name) => req.param(name) ?? "");
    return RESPONSE_ALREADY_SENT;
  };
}
