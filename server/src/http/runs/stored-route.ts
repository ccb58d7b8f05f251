import type { Exchange, ServedRuns, ServerContext } from "../server-context.js";

/** The context of a route for stored runs. */
export interface StoredRoute {
  readonly context: ServerContext;
  readonly server: ServedRuns;
  readonly exchange: Exchange;
  readonly query: URLSearchParams;
}
