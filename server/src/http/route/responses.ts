import type { JsonObject } from "@ambit/core/contract";
import type { SchemaName } from "./json-schema.js";
import { runIdJson } from "./query.js";
import type { OpenApiOperation } from "./route.js";

/** Where references to schemas lead. */
export const base = "#/components/schemas/";

/** What each status means on every route. `FailedResult` has the details: `failure.code`, gaps and issues. */
const failures = {
  400: "`request_invalid`: the body can't be used; every issue is listed by its path.",
  401: "`unauthorized`: the runner's token is missing or wrong.",
  402: "`budget_exceeded`: the run used more of its model than its budget.",
  403: "`unauthorized`: a web page of another site calls.",
  404: "`not_found`: there is no such route, run, session or question here, or its events are no longer kept.",
  409: "`session_elsewhere`: another replica has the session; the message has its address. `command_executed`: the request's command began a run before.",
  408: "`request_invalid`: the body arrived too slowly.",
  410: "`interaction_expired`: the question waited too long, or the agent withdrew it; the agent asks again if it must.",
  413: "`request_invalid`: the body is too large.",
  422: "`boundary_refused`: the boundary can't be guaranteed; every gap is listed with its fix. `idempotency_key_reused`: the key belongs to another request.",
  429: "`at_capacity`, `session_in_use`: try again later; nothing was begun.",
  499: "`run_cancelled`: the run was cancelled.",
  500: "`internal` or `plugin_broke_contract`: the runner's log has the cause.",
  502: "`sandbox_failed`, `harness_failed`, `model_failed`, `outputs_failed` or `runner_lost`.",
  503: "`store_failed`: the store can't be reached, or is full: free room on its disk, or delete runs.",
  504: "`run_timed_out`: a time limit of the runner ended the run.",
} as const;
type DocumentedStatus = keyof typeof failures;

/** What every route with a token may answer: the caller, its connections, and a fault of the server. */
const everywhere: readonly DocumentedStatus[] = [401, 403, 429, 500];

/** @param statuses besides those that every route with a token may answer. */
export function failed(...statuses: readonly DocumentedStatus[]): JsonObject {
  return Object.fromEntries([...everywhere, ...statuses].map((status) => [status, failedResponse(status)]));
}

/** @param content default: JSON. */
export function failedResponse(
  status: DocumentedStatus,
  content: JsonObject = { "application/json": { schema: reference("FailedResult") } },
): JsonObject {
  const isLater = status === 429 || status === 503;
  return { description: failures[status], ...(isLater ? { headers: retryAfter } : {}), content };
}

/** The header that every 429 and 503 has. */
export const retryAfter: JsonObject = {
  "retry-after": { description: "Seconds to wait before the next attempt.", schema: { type: "integer" } },
};

export function jsonResponse(description: string, schema: SchemaName): JsonObject {
  return { description, content: { "application/json": { schema: reference(schema) } } };
}

export function bytes(mediaType: string, description: string): JsonObject {
  return { description, content: { [mediaType]: { schema: { type: "string", format: "binary" } } } };
}

export function body(schema: SchemaName, required: boolean): JsonObject {
  return { required, content: { "application/json": { schema: reference(schema) } } };
}

export function reference(schema: SchemaName): JsonObject {
  return { $ref: `${base}${schema}` };
}

interface RunOperation extends Pick<OpenApiOperation, "operationId" | "tag" | "summary"> {
  readonly description: string;
  /** The schemas of its body, by media type. */
  readonly content: Readonly<Record<string, { readonly schema: JsonObject }>>;
}

/** What the document says of a route that begins a run. */
export function runOperation({ content, ...said }: RunOperation): OpenApiOperation {
  const isStream = !Object.keys(content).includes("application/json");
  const refusals = runFailures.map((status) => [
    status,
    isStream ? streamFailure(status) : failedResponse(status),
  ]);
  return {
    ...said,
    parameters: [
      {
        name: "Idempotency-Key",
        in: "header",
        description:
          "The run's id, as `runId` in the body. The same key and body return the same run, running or ended, as long as it is kept; another body is refused with 422.",
        schema: runIdJson,
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
const streamStatuses: ReadonlySet<DocumentedStatus> = new Set([401, 403, 408, 409, 413, 429]);

function streamFailure(status: DocumentedStatus): JsonObject {
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
