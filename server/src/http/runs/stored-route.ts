import type { RouteCall } from "../route/route.js";
import type { Exchange, ServedRuns, ServerContext } from "../server-context.js";

/** A request to a route of recorded runs. */
export interface StoredRoute extends RouteCall<ServerContext, Exchange> {
  readonly server: ServedRuns;
}
