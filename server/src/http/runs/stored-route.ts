import type { DurableServer, Exchange, ServerContext } from "../server-context.js";

/** The context of a route for stored runs. */
export interface StoredRoute {
  readonly context: ServerContext;
  readonly server: DurableServer;
  readonly exchange: Exchange;
  readonly query: URLSearchParams;
}
