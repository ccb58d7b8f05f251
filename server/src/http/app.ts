import type { IncomingMessage, ServerResponse } from "node:http";
import { NotFound } from "@ambit/core";
import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Handler, Hono } from "hono";
import { callerOf, setCaller, shareOf } from "../tenants/caller.js";
import { whyNotForPage } from "../tenants/page-grant.js";
import {
  admitCaller,
  answerOrigin,
  callersTrace,
  tokenOfUrl,
  urlTokenHeaders,
} from "./caller/admit-caller.js";
import { whyNotLocal } from "./caller/loopback.js";
import { TurnCancellation } from "./cancel-turn.js";
import { doorRoutes } from "./doors/door-routes.js";
import { documentOf } from "./openapi-document.js";
import { responseFormat } from "./response/records.js";
import { HttpRefusal, isOurFault, refusalOf, sendRefusal } from "./response/refusal.js";
import { Query } from "./route/query.js";
import { type HttpRoute, type RouteContext, routerPath } from "./route/route.js";
import { routes as ambitsRoutes } from "./routes.js";
import type { ServerContext } from "./server-context.js";

type HonoEnvironment = { Bindings: HttpBindings };

/** Routes without a token: they only say that the server is up, and describe its API. */
const open = new Set(ambitsRoutes.filter(({ token }) => token === "none").map(({ path }) => path));

/** Routes that begin runs, each with its default response format. */
const runRoutes = new Map(ambitsRoutes.map(({ path, beginsRuns }) => [path, beginsRuns]));

/** The routes, behind the checks that precede any work: the caller (403, 401), then whether the route exists. */
export function serverApp(context: ServerContext): Hono<HonoEnvironment> {
  const { runner, log, loopback, origins, inner } = context;
  const routes = [...ambitsRoutes, ...doorRoutes(runner.registry.doors)];
  const app = new Hono<HonoEnvironment>();

  /** Milliseconds since 1970. */
  const arrivals = new WeakMap<IncomingMessage, number>();
  app.use(async ({ env, req }, next) => {
    const { headers } = env.incoming;
    arrivals.set(env.incoming, Date.now());
    const speaksFor = inner.callerOf(env.incoming);
    if (speaksFor !== undefined) {
      setCaller(env.incoming, speaksFor);
      return await next();
    }
    const urlToken = tokenOfUrl(env.incoming);
    const isConsole = context.console?.serves(req.method, req.path) ?? false;
    // A link to the console may be anywhere; its sign-in looks at the origin itself.
    const judged = isConsole ? { host: headers.host } : headers;
    const foreign = loopback ? whyNotLocal(judged, context, urlToken !== undefined) : undefined;
    if (foreign !== undefined) throw new HttpRefusal(403, foreign, "unauthorized");
    if (isConsole) return await context.console?.answer(env.incoming, req.path);
    if (urlToken !== undefined)
      for (const [name, value] of Object.entries(urlTokenHeaders)) env.outgoing.setHeader(name, value);
    if (answerOrigin(env.incoming, env.outgoing, origins)) {
      env.outgoing.writeHead(204).end();
      return RESPONSE_ALREADY_SENT;
    }
    if (!open.has(req.path)) {
      await admitCaller(env.incoming, req.path, context);
      const project = shareOf(callerOf(env.incoming));
      context.connections.admit(env.incoming.socket, project === undefined ? "operator" : { project });
    }
    return await next();
  });
  app.post("/console/links", async ({ env }) => {
    if (context.console === undefined) throw new NotFound("Not found");
    return await context.console.makeLink(env.incoming);
  });

  let document: string | undefined;
  const shared: RouteContext = {
    ...context,
    cancellation: new TurnCancellation(runner),
    documentText: () => {
      document ??= JSON.stringify(documentOf(routes, context.version, runner.registry.requestSchema));
      return document;
    },
  };
  for (const [path, ofPath] of Map.groupBy(routes, routerPath)) {
    for (const route of ofPath) app.on(route.method, path, handler(route, shared));
    const allowed = ofPath.map(({ method }) => method).join(", ");
    app.all(path, () => {
      throw new HttpRefusal(405, `Use ${allowed} ${path}.`, "not_found", { allow: allowed });
    });
  }

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

function handler(route: HttpRoute, context: RouteContext): Handler<HonoEnvironment> {
  const { query: parameters = [], refusesOthers = false } = route;
  return async ({ env, req }) => {
    const call = {
      context,
      exchange: env,
      path: (name: string) => req.param(name) ?? "",
      get query() {
        return new Query(new URL(env.incoming.url ?? "/", "http://localhost").searchParams);
      },
    };
    const caller = callerOf(env.incoming);
    const refusal = caller.kind === "page" ? whyNotForPage(caller.grant, route, call.path) : undefined;
    if (refusal !== undefined) throw new HttpRefusal(403, refusal, "unauthorized");
    if (caller.kind === "page" && follows(route) && context.inner.callerOf(env.incoming) === undefined)
      endAfter(env.outgoing, caller.grant.expiresAt - context.pageTokens.now());
    if (refusesOthers) call.query.requireKnown(parameters);
    return (await route.handle(call)) ?? RESPONSE_ALREADY_SENT;
  };
}

/** Whether its caller reads on for as long as something happens: a request that does something is answered to its end. */
function follows({ method, isDoor = false, operation }: HttpRoute): boolean {
  return method === "GET" && (isDoor || operation.operationId === "events");
}

/** Breaks a response that has begun by then, so that its reader doesn't take it for complete. */
function endAfter(outgoing: ServerResponse, lifetimeMs: number): void {
  const timer = setTimeout(() => {
    if (outgoing.headersSent) outgoing.destroy();
  }, lifetimeMs);
  timer.unref();
  outgoing.once("close", () => clearTimeout(timer));
}
