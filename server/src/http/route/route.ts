import type { JsonObject } from "@ambit/core/contract";
import { type Query, type QueryParameter, runIdJson } from "./query.js";

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

/** One request to a route. */
export interface RouteCall<Context, Exchange> {
  readonly context: Context;
  readonly exchange: Exchange;
  readonly query: Query;
  /** A parameter of the path. */
  path(name: string): string;
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
export interface Route<Context, Exchange> {
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
  handle(call: RouteCall<Context, Exchange>): RouteAnswer | Promise<RouteAnswer>;
}

/** The path as the router knows it: `/runs/:runId`. */
export function routerPath({ path }: { readonly path: string }): string {
  return path.replaceAll(/\{(\w+)(\*?)\}/g, (_all, name: string, rest: string) =>
    rest === "" ? `:${name}` : `:${name}{.+}`,
  );
}

/** The path as the document has it, which knows no parameter with slashes. */
export function documentPath({ path }: { readonly path: string }): string {
  return path.replaceAll("*}", "}");
}

/** The route's operation in the document. Pure. */
export function operationOf({
  path,
  token,
  query = [],
  operation,
}: Pick<Route<unknown, unknown>, "path" | "token" | "query" | "operation">): JsonObject {
  const {
    operationId,
    tag,
    summary,
    description,
    parameters: headers = [],
    requestBody,
    responses,
  } = operation;
  const parameters = [
    ...[...path.matchAll(/\{(\w+)\*?\}/g)].map(([, name = ""]) => inPath(name)),
    ...query.map(({ name, description: said, schema }) => ({
      name,
      in: "query",
      description: said,
      schema,
    })),
    ...headers,
  ];
  return {
    operationId,
    tags: [typeof tag === "string" ? tag : tag.door],
    summary,
    description,
    ...(token === "none" ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses,
  };
}

/** What a parameter of a path may be. Others are any text. */
const pathSchemas: Readonly<Record<string, JsonObject>> = {
  runId: runIdJson,
  sessionId: { type: "string", minLength: 1, maxLength: 256 },
};

const inPath = (name: string) => ({
  name,
  in: "path",
  required: true,
  schema: pathSchemas[name] ?? { type: "string", minLength: 1 },
});
