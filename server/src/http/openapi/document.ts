import type { JsonObject } from "@ambit/core/contract";
import { wireSchemas } from "./json-schema.js";
import {
  base,
  body,
  type FailureStatus,
  failed,
  failedResponse,
  failures,
  jsonResponse,
  reference,
  retryAfter,
} from "./parts.js";
import { storedPaths } from "./stored-paths.js";
import { webhooks } from "./webhooks.js";

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
    webhooks: webhooks(),
    components: {
      schemas: wireSchemas(base),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        token: {
          type: "apiKey",
          in: "header",
          name: "X-Ambit-Token",
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
        summary: "Runs one turn of an agent, and returns its result",
        description:
          "With `Accept: application/x-ndjson` or `text/event-stream` it answers as `POST /stream` does. The header `x-ambit-run-id` has the run's id; a caller that gave none learns it with the result.",
        content: { "application/json": { schema: reference("RunResult") } },
      }),
    },
    "/stream": {
      post: run({
        operationId: "stream",
        summary: "Runs one turn of an agent, and streams its events",
        description:
          "Events, then exactly one `result` record in every case: a refused or failed run is such a record too, with the status 200. NDJSON, unless `Accept` asks for `text/event-stream`; with `Accept: application/json` it answers as `POST /run` does. The header `x-ambit-run-id` has the run's id.",
        content: {
          "application/x-ndjson": { schema: reference("StreamRecord") },
          "text/event-stream": { schema: reference("StreamRecord") },
        },
      }),
    },
    "/plan": {
      post: {
        operationId: "plan",
        summary: "Decides whether a request could run, without side effects",
        requestBody: body("RunRequest", false),
        responses: {
          200: jsonResponse("The plan, accepted.", "PlanResponse"),
          ...failed(400, 408, 413, 422, 503),
        },
      },
    },
    "/kill": {
      post: {
        operationId: "kill",
        summary: "Ends a session, and the run that uses it",
        requestBody: body("KillRequest", true),
        responses: {
          200: jsonResponse("The session has ended.", "EndedResponse"),
          ...failed(400, 408, 413),
        },
      },
    },
    "/cancel": {
      post: {
        operationId: "cancelTurn",
        summary: "Stops the turn of a session, which stays",
        requestBody: body("CancelTurnRequest", true),
        responses: {
          200: jsonResponse("Whether a turn was stopped.", "CancelTurnResponse"),
          ...failed(400, 404, 408, 413),
        },
      },
    },
    ...storedPaths(),
    "/plugins": {
      get: {
        operationId: "plugins",
        summary: "The loaded plugins, their claims, and what was proven on this host",
        responses: { 200: jsonResponse("Every actor.", "PluginsResponse"), ...failed() },
      },
    },
    "/metrics": {
      get: {
        operationId: "metrics",
        summary: "Figures for Prometheus, where a plugin counts them",
        responses: {
          200: {
            description: "The Prometheus text format, version 0.0.4.",
            content: { "text/plain": { schema: { type: "string" } } },
          },
          ...failed(404),
        },
      },
    },
    "/subscription-status": {
      get: {
        operationId: "subscriptionStatus",
        summary: "The loaded harnesses; none of them uses a login of the runner",
        responses: { 200: jsonResponse("Every harness.", "SubscriptionStatus"), ...failed() },
      },
    },
    "/health": {
      get: {
        operationId: "health",
        summary: "Whether the server is up",
        security: [],
        responses: { 200: jsonResponse("It does.", "HealthResponse"), 403: failedResponse(403) },
      },
    },
    "/ready": {
      get: {
        operationId: "ready",
        summary: "Whether the server takes runs now: it doesn't shut down, and its store answers",
        security: [],
        responses: {
          200: jsonResponse("It does.", "ReadyResponse"),
          403: failedResponse(403),
          503: {
            ...jsonResponse("It doesn't: send runs to another replica, or later.", "ReadyResponse"),
            headers: retryAfter,
          },
        },
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
          403: failedResponse(403),
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
  readonly content: Readonly<Record<string, { readonly schema: JsonObject }>>;
}

function run({ operationId, summary, description, content }: RunOperation): JsonObject {
  const isStream = !Object.keys(content).includes("application/json");
  const refusals = runFailures.map((status) => [
    status,
    isStream ? streamFailure(status) : failedResponse(status),
  ]);
  return {
    operationId,
    summary,
    description,
    parameters: [
      {
        name: "Idempotency-Key",
        in: "header",
        description:
          "The run's id, as `runId` in the body. The same key and body give the same run again, under way or ended, as long as it is kept; another body is refused with 422.",
        schema: { type: "string" },
      },
      {
        name: "Prefer",
        in: "header",
        description:
          "`respond-async`: the response is 202 with the run's address, and the run continues in the background, or waits for a free slot.",
        schema: { type: "string" },
      },
    ],
    requestBody: body("RunRequest", false),
    responses: {
      200: {
        description: "The run's id is in a header, its outcome in the body.",
        headers: { "x-ambit-run-id": { schema: { type: "string" } } },
        content,
      },
      202: {
        ...jsonResponse("Detached: the run continues in the background.", "AcceptedResponse"),
        headers: {
          location: { schema: { type: "string" } },
          "x-ambit-run-id": { schema: { type: "string" } },
        },
      },
      ...Object.fromEntries(refusals),
    },
  };
}

/** How a run or its request may fail. */
const runFailures = [400, 401, 402, 403, 408, 409, 413, 422, 429, 499, 500, 502, 503, 504] as const;

/** Failures of a stream that set its status; every other one is the one record of a 200. */
const streamStatuses: ReadonlySet<FailureStatus> = new Set([401, 403, 408, 409, 413, 429]);

function streamFailure(status: FailureStatus): JsonObject {
  const json = { "application/json": { schema: reference("FailedResult") } };
  if (streamStatuses.has(status)) {
    const record = { schema: reference("StreamRecord") };
    return failedResponse(status, {
      "application/x-ndjson": record,
      "text/event-stream": record,
      ...json,
    });
  }
  const description = `Only with \`Accept: application/json\`. ${failures[status]}`;
  return { ...failedResponse(status, json), description };
}
