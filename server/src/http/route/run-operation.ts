import type { JsonObject } from "@ambit/core/contract";
import { runIdJson } from "./query.js";
import {
  body,
  type DocumentedStatus,
  failedResponse,
  failures,
  jsonResponse,
  reference,
} from "./responses.js";
import type { OpenApiOperation } from "./route.js";

interface RunOperation extends Pick<OpenApiOperation, "operationId" | "tag" | "summary"> {
  readonly description: string;
  /** By media type. */
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
