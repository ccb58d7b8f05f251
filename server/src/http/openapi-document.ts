import type { JsonObject, RunRequestSchema } from "@ambit/core/contract";
import { wireSchemas } from "./route/json-schema.js";
import { base, body } from "./route/responses.js";
import { documentPath, operationOf, type Route, tags } from "./route/route.js";

/**
 * The OpenAPI 3.1 document of the server, made from its routes and from the schemas that validate.
 *
 * @param request the schema of requests, with the fields of the loaded dialects.
 */
export function documentOf<Context, Exchange>(
  routes: readonly Route<Context, Exchange>[],
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
function doorTags<Context, Exchange>(routes: readonly Route<Context, Exchange>[]): readonly JsonObject[] {
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
