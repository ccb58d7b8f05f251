import type { JsonObject } from "@ambit/core/contract";
import { type SchemaName, wireSchemas } from "./json-schema.js";

const base = "#/components/schemas/";

/** What each status means, whatever the route. `FailedResult` says more: its `failure.code`, gaps and issues. */
const failures = {
  400: "`request_invalid`: the body can't be used; every issue is listed by its path.",
  401: "`unauthorized`: the runner's token is missing or wrong.",
  403: "`unauthorized`: a web page of another site calls.",
  404: "`not_found`: there is no such route or run here.",
  408: "`request_invalid`: the body came too slowly.",
  413: "`request_invalid`: the body is too large.",
  422: "`boundary_refused`: the boundary can't be guaranteed; every gap is listed with its fix.",
  429: "`at_capacity`: try again later; nothing was begun.",
  499: "`run_cancelled`: the run was cancelled.",
  500: "`internal` or `plugin_broke_contract`: the runner's log has the cause.",
  502: "`sandbox_failed`, `harness_failed` or `model_failed`.",
  504: "`run_timed_out`: a time limit of the runner ended the run.",
} as const;
type FailureStatus = keyof typeof failures;

/** The OpenAPI 3.1 document of the server, made from the schemas that validate. */
export function openApiDocument(version: string): JsonObject {
  return {
    openapi: "3.1.0",
    info: {
      title: "Ambit",
      version,
      summary: "Runs a coding agent for one turn, inside a boundary that is guaranteed or refused.",
      description:
        "Keys are camelCase; snake_case and the spellings of earlier wires are read too. An explicit null means absent. Unknown keys are refused.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "http://127.0.0.1:8765" }],
    security: [{ bearer: [] }, { token: [] }],
    paths: paths(),
    components: {
      schemas: wireSchemas(base),
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

function paths(): JsonObject {
  return {
    "/run": {
      post: run({
        operationId: "run",
        summary: "Runs one turn of an agent, and answers with its result",
        description:
          "With `Accept: application/x-ndjson` or `text/event-stream` it answers as `POST /stream` does. The header `x-ambit-run-id` has the run's id; a caller that gave none learns it with the result.",
        answers: { "application/json": { schema: reference("RunResult") } },
        failures: [400, 401, 403, 408, 413, 422, 429, 499, 500, 502, 504],
      }),
    },
    "/stream": {
      post: run({
        operationId: "stream",
        summary: "Runs one turn of an agent, and answers with what happens as it happens",
        description:
          "Events, then exactly one `result` record, whatever happens: a refused or failed run is such a record too, with the status 200. NDJSON, unless `Accept` asks for `text/event-stream`; with `Accept: application/json` it answers as `POST /run` does. The header `x-ambit-run-id` has the run's id.",
        answers: {
          "application/x-ndjson": { schema: reference("StreamRecord") },
          "text/event-stream": { schema: reference("StreamRecord") },
        },
        failures: [401, 403, 408, 413, 429],
      }),
    },
    "/plan": {
      post: {
        operationId: "plan",
        summary: "Decides whether a request could run, and touches nothing",
        requestBody: body("RunRequest", false),
        responses: {
          200: answer("The plan, accepted.", "PlanResponse"),
          ...failed(400, 401, 403, 408, 413, 422, 500),
        },
      },
    },
    "/kill": {
      post: {
        operationId: "kill",
        summary: "Ends a session, and the run that uses it",
        requestBody: body("KillRequest", true),
        responses: {
          200: answer("Nothing of it is left.", "EndedResponse"),
          ...failed(400, 401, 403, 408, 413, 500),
        },
      },
    },
    "/runs/{runId}/cancel": {
      post: {
        operationId: "cancel",
        summary: "Ends a run early; it still ends in its one result",
        parameters: [{ name: "runId", in: "path", required: true, schema: { type: "string" } }],
        responses: { 200: answer("The run is ending.", "EndedResponse"), ...failed(401, 403, 404, 500) },
      },
    },
    "/runs/{runId}/interactions/{interactionId}": {
      post: {
        operationId: "answer",
        summary: "A live answer to what a run that is held open asks its user",
        description:
          "Each question is answered once, in any order; an answer that comes too late is refused with 404.",
        parameters: ["runId", "interactionId"].map((name) => ({
          name,
          in: "path",
          required: true,
          schema: { type: "string" },
        })),
        requestBody: body("InteractionAnswer", true),
        responses: {
          200: answer("It was forwarded.", "ForwardedResponse"),
          ...failed(400, 401, 403, 404, 408, 413, 500),
        },
      },
    },
    "/plugins": {
      get: {
        operationId: "plugins",
        summary: "What is loaded, what it claims, and what was seen of that on this host",
        responses: { 200: answer("Every actor.", "PluginsResponse"), ...failed(401, 403, 500) },
      },
    },
    "/subscription-status": {
      get: {
        operationId: "subscriptionStatus",
        summary: "Which harnesses are loaded, and that none uses a login of the runner's",
        responses: { 200: answer("Every harness.", "SubscriptionStatus"), ...failed(401, 403, 500) },
      },
    },
    "/health": {
      get: {
        operationId: "health",
        summary: "That it lives",
        security: [],
        responses: { 200: answer("It does.", "HealthResponse") },
      },
    },
    "/openapi.json": {
      get: {
        operationId: "openapi",
        summary: "This document",
        security: [],
        responses: {
          200: {
            description: "This document.",
            content: { "application/json": { schema: { type: "object" } } },
          },
        },
      },
    },
  };
}

interface RunOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  /** By media type. */
  readonly answers: Readonly<Record<string, { readonly schema: JsonObject }>>;
  readonly failures: readonly FailureStatus[];
}

function run({ operationId, summary, description, answers, failures: statuses }: RunOperation): JsonObject {
  const content = Object.keys(answers).includes("application/json") ? jsonFailure : streamedFailure;
  const refusals = statuses.map((status) => [status, { description: failures[status], content }]);
  return {
    operationId,
    summary,
    description,
    parameters: [
      {
        name: "Idempotency-Key",
        in: "header",
        description:
          "The run's id, as `runId` in the body. A second run of the id is refused while the first is under way; its result isn't kept.",
        schema: { type: "string" },
      },
    ],
    requestBody: body("RunRequest", false),
    responses: {
      200: {
        description: "The run's id is in a header, its outcome in the body.",
        headers: { "x-ambit-run-id": { schema: { type: "string" } } },
        content: answers,
      },
      ...Object.fromEntries(refusals),
    },
  };
}

const jsonFailure = { "application/json": { schema: reference("FailedResult") } };
const streamedFailure = {
  "application/x-ndjson": { schema: reference("StreamRecord") },
  "text/event-stream": { schema: reference("StreamRecord") },
};

function failed(...statuses: readonly FailureStatus[]): JsonObject {
  return Object.fromEntries(statuses.map((status) => [status, answer(failures[status], "FailedResult")]));
}

function answer(description: string, schema: SchemaName): JsonObject {
  return { description, content: { "application/json": { schema: reference(schema) } } };
}

function body(schema: SchemaName, required: boolean): JsonObject {
  return { required, content: { "application/json": { schema: reference(schema) } } };
}

function reference(schema: SchemaName): JsonObject {
  return { $ref: `${base}${schema}` };
}
