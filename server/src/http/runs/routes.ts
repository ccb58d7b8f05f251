import type { Exchange, ServerContext } from "../server-context.js";
import { handleDeliveries, handleRedeliver } from "./delivery-routes.js";
import {
  handleAnswer,
  handleDeleteSession,
  handleInteractions,
  handleSessions,
} from "./interaction-routes.js";
import { handleCancel, handleDelete, handleEvents, handleRunInfo, handleRuns } from "./run-routes.js";
import type { StoredRoute } from "./stored-route.js";

type Parameter = (name: string) => string;
type Handler = (exchange: Exchange, parameter: Parameter) => Promise<void> | void;

/** A path with a handler for each method. */
export interface RouteTable {
  readonly [path: string]: Readonly<Partial<Record<"GET" | "POST" | "DELETE", Handler>>>;
}

/** The routes of runs beyond their own connection. */
export function storedRoutes(context: ServerContext): RouteTable {
  const stored =
    (act: (route: StoredRoute, parameter: Parameter) => Promise<void>): Handler =>
    async (exchange, parameter) => {
      const { searchParams } = new URL(exchange.incoming.url ?? "/", "http://localhost");
      await act({ context, server: await context.served(), exchange, query: searchParams }, parameter);
    };
  return {
    "/runs": { GET: stored(handleRuns) },
    "/runs/:runId": {
      GET: stored((route, of) => handleRunInfo(route, of("runId"))),
      DELETE: stored((route, of) => handleDelete(route, of("runId"))),
    },
    "/runs/:runId/events": { GET: stored((route, of) => handleEvents(route, of("runId"))) },
    "/runs/:runId/cancel": {
      POST: stored((route, of) => handleCancel(route, of("runId"))),
    },
    "/runs/:runId/interactions/:interactionId": {
      POST: stored((route, of) => handleAnswer(route, of("runId"), of("interactionId"))),
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
