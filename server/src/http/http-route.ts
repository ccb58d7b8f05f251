import type { TurnCancellation } from "./cancel-turn.js";
import type { Route } from "./route/route.js";
import type { Exchange, ServerContext } from "./server-context.js";

/** What routes share, besides the server's context. */
export interface RouteContext extends ServerContext {
  readonly cancellation: TurnCancellation;
  /** The OpenAPI document as JSON, made once: it needs no token, and making it takes 20 ms. */
  documentText(): string;
}

export interface HttpRoute extends Route<RouteContext, Exchange> {
  /** Of a route that begins runs: its default format. */
  readonly beginsRuns?: "json" | "ndjson";
  /** Whether a door answers it, which does nothing but call other routes as its caller. Default false. */
  readonly isDoor?: boolean;
}
