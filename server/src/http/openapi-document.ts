import type { JsonObject, RunRequestSchema } from "@ambit/core/contract";
import { wireSchemas } from "./route/json-schema.js";
import { runIdJson } from "./route/query.js";
import { base, body } from "./route/responses.js";
import { type HttpRoute, tags } from "./route/route.js";

/**
 * The OpenAPI 3.1 document of the server, made from its routes and from the schemas that validate.
 *
 * @param request the schema of requests, with the fields of the loaded dialects.
 */
export function documentOf(
  routes: readonly HttpRoute[],
  version: string,
  request: RunRequestSchema,
): JsonObject {
  return {
    openapi: "3.1.0",
    info: {
      title: "Ambit",
      version,
      summary: "Runs a coding agent for one turn, inside a boundary that is guaranteed or refused.",
      description:
        "Keys are camelCase; snake_case and the spellings of earlier wires are read too. An explicit null means absent. Unknown keys are refused.",
      license: { name: "MIT", identifier: "MIT" },
      contact: { name: "The operator of this server" },
    },
    servers: [{ url: "http://127.0.0.1:8765" }],
    security: [{ bearer: [] }, { token: [] }],
    tags: [
      ...Object.entries(tags).map(([name, description]) => ({ name, description })),
      ...doorTags(routes),
    ],
    paths: Object.fromEntries(
      [...Map.groupBy(routes, documentPath)].map(([path, ofPath]) => [
        path,
        Object.fromEntries(ofPath.map((route) => [route.method.toLowerCase(), operationOf(route)])),
      ]),
    ),
    webhooks: webhooks(),
    components: {
      schemas: wireSchemas(base, request),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        token: {
          type: "apiKey",
          in: "header",
          name: "X-Ambit-Token",
          description: "`X-Agenta-Runner-Token` is read too.",
        },
      },
    },
  };
}

/** A tag for the routes of each door. */
function doorTags(routes: readonly HttpRoute[]): readonly JsonObject[] {
  const doors = routes.flatMap(({ operation: { tag } }) => (typeof tag === "string" ? [] : [tag.door]));
  return [...new Set(doors)].map((name) => ({
    name,
    description: `The door ${name}: another protocol, whose requests this server translates.`,
  }));
}

const header = (name: string, description: string) => ({
  name,
  in: "header",
  required: true,
  description,
  schema: { type: "string" },
});

/** What a server posts to a request's `webhook.url`. */
function webhooks(): JsonObject {
  return {
    run: {
      post: {
        operationId: "webhook",
        tags: ["Webhooks"],
        summary: "A run has ended, or asks its user something",
        description:
          "Signed by the Standard Webhooks specification: verify it with one of its libraries. Sent again until the answer is a 2xx; 410 ends that. The same message may come twice, and messages may come in another order.",
        parameters: [
          header("webhook-id", "Names the message: the same with each attempt."),
          header("webhook-timestamp", "When the attempt began, in seconds since the epoch."),
          header("webhook-signature", "`v1,` and a signature, for each secret of the server."),
        ],
        requestBody: body("WebhookMessage", true),
        responses: { "2XX": { description: "The message was received." } },
      },
    },
  };
}

/** The path as the document has it, which knows no parameter with slashes. */
function documentPath({ path }: { readonly path: string }): string {
  return path.replaceAll("*}", "}");
}

/** The route's operation in the document. Pure. */
function operationOf({ path, token, query = [], operation }: HttpRoute): JsonObject {
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
