import type { JsonObject } from "@ambit/core/contract";
import { body, failed, jsonResponse, reference } from "./parts.js";

const inPath = (name: string) => ({ name, in: "path", required: true, schema: { type: "string" } });
const inQuery = (name: string, description: string, schema: JsonObject = { type: "string" }) => ({
  ...{ name, in: "query", description, schema },
});
const count = { type: "integer", minimum: 0 };
const paging = [
  inQuery("projectId", "Only this project's; empty: those of no project."),
  inQuery("limit", "The size of a page: 1 to 1,000. Default: 100.", count),
];
const after = (what: string) =>
  inQuery("after", `The next page: the id of the last ${what} of the page before.`);

const ofProject = inQuery("projectId", "For the operator, where several projects have a run of this id.", {
  type: "string",
});

/** The paths of runs beyond their own connection. */
export function storedPaths(): JsonObject {
  return {
    "/runs": {
      get: {
        operationId: "runs",
        summary: "The stored runs, the newest first",
        parameters: [
          inQuery("sessionId", "Only this session's."),
          inQuery("state", "Only those.", { enum: ["queued", "running", "ended"] }),
          after("run"),
          ...paging,
        ],
        responses: {
          200: jsonResponse("A page of runs, without results.", "RunsResponse"),
          ...failed(400, 404, 503),
        },
      },
    },
    "/runs/{runId}": {
      get: {
        operationId: "runInfo",
        summary: "A run's state, its result once it has ended, and the state of its webhook's messages",
        parameters: [inPath("runId"), ofProject],
        responses: { 200: jsonResponse("The run.", "RunInfo"), ...failed(400, 404, 503) },
      },
      delete: {
        operationId: "deleteRun",
        summary: "Deletes an ended run, with its events and questions",
        parameters: [inPath("runId"), ofProject],
        responses: {
          200: jsonResponse("The run was deleted.", "EndedResponse"),
          ...failed(400, 404, 503),
        },
      },
    },
    "/runs/{runId}/events": {
      get: {
        operationId: "events",
        summary: "A run's records from any point on: replays them, follows them, and ends with the result",
        description:
          "Any number of readers, each at its own pace. A reader whose connection drops reconnects with the number of records that it has. NDJSON, unless `Accept` asks for `text/event-stream`, where `id:` is a record's number.",
        parameters: [
          inPath("runId"),
          ofProject,
          inQuery("after", "The number of records that the reader already has. Default: 0.", count),
          {
            name: "Last-Event-ID",
            in: "header",
            description:
              "As `after`; a browser's EventSource sends it automatically; it takes precedence over `after`.",
            schema: count,
          },
        ],
        responses: {
          200: {
            description: "The records after that one.",
            content: {
              "application/x-ndjson": { schema: reference("StreamRecord") },
              "text/event-stream": { schema: reference("StreamRecord") },
            },
          },
          204: { description: "The reader has everything: the run has ended." },
          ...failed(400, 404, 503),
        },
      },
    },
    "/runs/{runId}/cancel": {
      post: {
        operationId: "cancel",
        summary: "Ends a run early, on any replica; it still returns its one result",
        parameters: [inPath("runId"), ofProject],
        responses: {
          200: jsonResponse("The run is ending.", "EndedResponse"),
          ...failed(400, 404, 503),
        },
      },
    },
    "/runs/{runId}/interactions/{interactionId}": {
      post: {
        operationId: "answer",
        summary: "Answers a question of a run to its user",
        description:
          "A run that is held open gets it immediately. An answer to a paused run is kept, and the session's next turn uses it. Each question is answered once; a second answer is refused with 404, and one that comes too late with 410.",
        parameters: [...["runId", "interactionId"].map(inPath), ofProject],
        requestBody: body("InteractionAnswer", true),
        responses: {
          200: jsonResponse("The answer was forwarded to the run, or stored.", "ForwardedResponse"),
          ...failed(400, 404, 408, 410, 413, 503),
        },
      },
    },
    "/deliveries": {
      get: {
        operationId: "deliveries",
        summary: "The messages of all runs' webhooks, the newest first",
        parameters: [
          inQuery("state", "Only those.", { enum: ["pending", "delivered", "failed"] }),
          inQuery("runId", "Only this run's."),
          after("message"),
          ...paging,
        ],
        responses: {
          200: jsonResponse("A page of them.", "DeliveriesResponse"),
          ...failed(400, 404, 503),
        },
      },
    },
    "/deliveries/{deliveryId}/redeliver": {
      post: {
        operationId: "redeliver",
        summary: "Sends a webhook's message again, regardless of its state",
        description:
          "Sends the same message immediately, with the same `webhook-id`, a new signature, and as many attempts as a new message.",
        parameters: [inPath("deliveryId")],
        responses: {
          202: jsonResponse("The message is due.", "StoredDelivery"),
          ...failed(400, 404, 503),
        },
      },
    },
    "/interactions": {
      get: {
        operationId: "interactions",
        summary: "The questions of runs to their users, the newest first",
        parameters: [
          inQuery("state", "Only those.", { enum: ["open", "answered", "used", "expired"] }),
          inQuery("runId", "Only this run's."),
          inQuery("sessionId", "Only this session's."),
          after("question"),
          ...paging,
        ],
        responses: {
          200: jsonResponse("A page of them.", "InteractionsResponse"),
          ...failed(400, 404, 503),
        },
      },
    },
    "/sessions": {
      get: {
        operationId: "sessions",
        summary: "The open sessions of all replicas",
        parameters: paging,
        responses: {
          200: jsonResponse("A page of them.", "SessionsResponse"),
          ...failed(400, 404, 503),
        },
      },
    },
    "/sessions/{sessionId}": {
      delete: {
        operationId: "deleteSession",
        summary: "Closes a session's sandbox and agent, and ends the run that uses it",
        parameters: [inPath("sessionId"), inQuery("projectId", "The project of its runs.")],
        responses: {
          200: jsonResponse("The session has ended.", "EndedResponse"),
          ...failed(400, 404, 409, 503),
        },
      },
    },
  };
}
