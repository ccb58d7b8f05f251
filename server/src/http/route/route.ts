import type { JsonObject } from "@ambit/core/contract";
import type { TurnCancellation } from "../cancel-turn.js";
import type { Exchange, ServedRuns, ServerContext } from "../server-context.js";
import type { Query, QueryParameter } from "./query.js";

/** What routes are about, in the order of the OpenAPI document. A door's routes have its name. */
export const tags = {
  Runs: "One turn of one agent: begin it, follow it, end it.",
  Questions: "What a run asks its user, and the answers.",
  Files: "What left a run's workspace.",
  Sessions: "What outlives a run: its sandbox, its workspace and its agent.",
  Snapshots: "Copies of sessions, with which others begin.",
  Tokens: "For pages of users' browsers.",
  Usage: "What runs used, and what projects may use.",
  Webhooks: "Messages to the platform about its runs.",
  Server: "What is loaded here, and whether it takes runs.",
} as const;
export type Tag = keyof typeof tags;

/** What the OpenAPI document says of a route, besides its path and query. */
export interface OpenApiOperation {
  readonly operationId: string;
  readonly tag: Tag | { readonly door: string };
  readonly summary: string;
  readonly description: string;
  /** Headers. */
  readonly parameters?: readonly JsonObject[];
  readonly requestBody?: JsonObject;
  readonly responses: JsonObject;
}

/** What routes share. */
export interface RouteContext extends ServerContext {
  readonly cancellation: TurnCancellation;
  /** The OpenAPI document as JSON, made once: it needs no token, and making it takes 20 ms. */
  documentText(): string;
}

/** One request to a route. */
export interface RouteCall {
  readonly context: RouteContext;
  readonly exchange: Exchange;
  readonly query: Query;
  /** A parameter of the path. */
  path(name: string): string;
}

/** A request to a route of recorded runs. */
export interface StoredRoute extends RouteCall {
  readonly server: ServedRuns;
}

/** What a route answers. Undefined: it has answered on the exchange itself. */
export type RouteAnswer = Response | undefined;

/** A handler that answers on the exchange itself: Hono's response would be a layer and a copy more of a stream. */
export function streaming<Call>(handle: (call: Call) => Promise<void>): (call: Call) => Promise<undefined> {
  return async (call) => {
    await handle(call);
    return undefined;
  };
}

/** A route, once: the handler, the query and the OpenAPI document are made of this. */
export interface HttpRoute {
  readonly method: "GET" | "POST" | "DELETE";
  /** As in the document: `/runs/{runId}`. A parameter `{path*}` takes all that follows, with its slashes. */
  readonly path: string;
  /** `none`: no token is needed. Default: an operator's or a tenant's. */
  readonly token?: "none";
  /** Parameters of its query. */
  readonly query?: readonly QueryParameter<unknown>[];
  /** Whether a parameter that isn't one of these is refused. Default false. */
  readonly refusesOthers?: boolean;
  readonly operation: OpenApiOperation;
  /** The default format of a route that begins runs. Undefined: it begins none. */
  readonly beginsRuns?: "json" | "ndjson";
  /** Whether a door answers it, which does nothing but call other routes as its caller. Default false. */
  readonly isDoor?: boolean;
  handle(call: RouteCall): RouteAnswer | Promise<RouteAnswer>;
}

/** The path as the router knows it: `/runs/:runId`. */
export function routerPath({ path }: { readonly path: string }): string {
  return path.replaceAll(/\{(\w+)(\*?)\}/g, (_all, name: string, rest: string) =>
    rest === "" ? `:${name}` : `:${name}{.+}`,
  );
}

/** A handler that waits for the store, if it isn't open yet. */
export function stored(handle: (route: StoredRoute) => Promise<RouteAnswer>): HttpRoute["handle"] {
  return async (call) => handle({ ...call, server: await call.context.served() });
}
