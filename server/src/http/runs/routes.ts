import { NotFound } from "@ambit/core";
import type { DurableServer, Exchange, ServerContext } from "../server-context.js";
import { handleAnswer, handleCancel } from "../session-routes.js";
import { handleDeliveries, handleRedeliver } from "./delivery-routes.js";
import {
  handleDeleteSession,
  handleInteractions,
  handleSessions,
  handleStoredAnswer,
} from "./interaction-routes.js";
import { handleDelete, handleEvents, handleRunInfo, handleRuns, handleStoredCancel } from "./run-routes.js";
import type { StoredRoute } from "./stored-route.js";

type Parameter = (name: string) => string;
type Handler = (exchange: Exchange, parameter: Parameter) => Promise<void> | void;

/** A path with a handler for each method. */
export interface RouteTable {
  readonly [path: string]: Readonly<Partial<Record<"GET" | "POST" | "DELETE", Handler>>>;
}

/** The routes of runs beyond their own connection. Most need a store; cancel and answer work without one. */
export function storedRoutes(context: ServerContext): RouteTable {
  const stored =
    (act: (route: StoredRoute, parameter: Parameter) => Promise<void>): Handler =>
    async (exchange, parameter) => {
      const server = await context.durable();
      if (server === undefined) throw new NotFound(noStore);
      await act(routeOf(context, server, exchange), parameter);
    };
  /** Without a store: the runs of this process. */
  const eitherWay =
    (act: (route: StoredRoute, parameter: Parameter) => Promise<void>, without: Handler): Handler =>
    async (exchange, parameter) => {
      const server = await context.durable();
      await (server === undefined
        ? without(exchange, parameter)
        : act(routeOf(context, server, exchange), parameter));
    };
  return {
    "/runs": { GET: stored(handleRuns) },
    "/runs/:runId": {
      GET: stored((route, of) => handleRunInfo(route, of("runId"))),
      DELETE: stored((route, of) => handleDelete(route, of("runId"))),
    },
    "/runs/:runId/events": { GET: stored((route, of) => handleEvents(route, of("runId"))) },
    "/runs/:runId/cancel": {
      POST: eitherWay(
        (route, of) => handleStoredCancel(route, of("runId")),
        (exchange, of) => handleCancel(context, exchange, of("runId")),
      ),
    },
    "/runs/:runId/interactions/:interactionId": {
      POST: eitherWay(
        (route, of) => handleStoredAnswer(route, of("runId"), of("interactionId")),
        (exchange, of) => handleAnswer(context, exchange, of("runId"), of("interactionId")),
      ),
    },
    "/deliveries": { GET: stored(handleDeliveries) },
    "/deliveries/:deliveryId/redeliver": {
      POST: stored((route, of) => handleRedeliver(route, of("deliveryId"))),
    },
    "/interactions": { GET: stored(handleInteractions) },
    "/sessions": { GET: stored(handleSessions) },
    "/sessions/:sessionId": {
      DELETE: stored((route, of) => handleDeleteSession(route, of("sessionId"))),
    },
  };
}

function routeOf(context: ServerContext, server: DurableServer, exchange: Exchange): StoredRoute {
  const { searchParams } = new URL(exchange.incoming.url ?? "/", "http://localhost");
  return { context, server, exchange, query: searchParams };
}

const noStore =
  "There is no store here: load @ambit/store-sqlite or @ambit/store-postgres (see the server's README).";
