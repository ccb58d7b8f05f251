import { idOfRun, NotFound, RequestInvalid } from "@ambit/core";
import type { DeliveriesResponse, StoredDelivery } from "@ambit/durable";
import type { Delivery } from "@ambit/durable/store";
import { callersProjects } from "../../tenants/caller.js";
import { json } from "../response/send.js";
import { body, bytes, failed, jsonResponse, reference } from "../route/responses.js";
import { type HttpRoute, type RouteAnswer, type StoredRoute, streaming } from "../route/route.js";
import { runFilter } from "./find-run.js";
import {
  handleAnswer,
  handleDeleteSession,
  handleInteractions,
  handleSessions,
} from "./interaction-routes.js";
import {
  handleArchive,
  handleBundle,
  handleOutputFile,
  handleOutputFiles,
  handlePatch,
} from "./output-routes.js";
import {
  afterMessage,
  afterQuestion,
  afterRecord,
  afterRun,
  deliveryState,
  firstDay,
  groupedBy,
  interactionState,
  lastDay,
  lastEventId,
  limit,
  onlyAsking,
  onlyHarness,
  onlyProject,
  onlyRun,
  onlySandbox,
  onlySession,
  placeAfter,
  projectFilter,
  runOutcome,
  runState,
  runsProject,
  sessionsProject,
  urlTtl,
} from "./parameters.js";
import {
  handleCancel,
  handleDelete,
  handleEvents,
  handleMessage,
  handleRunInfo,
  handleRunRequest,
  handleRuns,
  handleSessionRun,
} from "./run-routes.js";
import { deliveryInfo } from "./stored-response.js";
import { handleQuotas, handleUsage } from "./usage-routes.js";

/** Waits for the store, if it isn't open yet. */
const withRuns =
  (handle: (route: StoredRoute) => Promise<RouteAnswer>): HttpRoute["handle"] =>
  async (call) =>
    handle({ ...call, server: await call.context.served() });

/** The routes of runs beyond their own connection. */
export const storedRoutes: readonly HttpRoute[] = [
  {
    method: "GET",
    path: "/runs",
    query: [
      onlySession,
      runState,
      runOutcome,
      onlyAsking,
      onlyHarness,
      onlySandbox,
      afterRun,
      onlyProject,
      limit,
    ],
    refusesOthers: true,
    operation: {
      operationId: "runs",
      tag: "Runs",
      summary: "The stored runs, the newest first",
      description:
        "A page at a time: `after` is the id of the last run of the page before. A page may be shorter than `limit`; only an empty one is the end.",
      responses: {
        200: jsonResponse("A page of runs, each with a summary in place of its result.", "RunsResponse"),
        ...failed(400, 404, 503),
      },
    },
    handle: withRuns(handleRuns),
  },
  {
    method: "GET",
    path: "/runs/{runId}",
    query: [runsProject],
    operation: {
      operationId: "runInfo",
      tag: "Runs",
      summary: "A run's state, its result once it has ended, and the state of its webhook's messages",
      description:
        "The result is what the caller of `POST /run` got, without its events: `GET /runs/{runId}/events` has these.",
      responses: { 200: jsonResponse("The run.", "RunInfo"), ...failed(400, 404, 503) },
    },
    handle: withRuns(streaming(handleRunInfo)),
  },
  {
    method: "GET",
    path: "/runs/{runId}/request",
    query: [runsProject],
    operation: {
      operationId: "runRequest",
      tag: "Runs",
      summary: "The request of a run, to begin it again, with `[redacted]` in place of each secret",
      description: "Kept with the run, encrypted, up to 128 KiB.",
      responses: { 200: jsonResponse("The request.", "RunRequestResponse"), ...failed(400, 404, 503) },
    },
    handle: withRuns(handleRunRequest),
  },
  {
    method: "DELETE",
    path: "/runs/{runId}",
    query: [runsProject],
    operation: {
      operationId: "deleteRun",
      tag: "Runs",
      summary: "Deletes an ended run, with its events and questions",
      description:
        "Its files are deleted too. A run that is queued or running is cancelled first: `POST /runs/{runId}/cancel`.",
      responses: { 200: jsonResponse("The run was deleted.", "EndedResponse"), ...failed(400, 404, 503) },
    },
    handle: withRuns(handleDelete),
  },
  {
    method: "GET",
    path: "/runs/{runId}/events",
    query: [runsProject, afterRecord],
    operation: {
      operationId: "events",
      tag: "Runs",
      summary: "A run's records from any point on: replays them, follows them, and ends with the result",
      description:
        "Any number of readers, each at its own pace. A reader whose connection drops reconnects with the number of records that it has. NDJSON, unless `Accept` asks for `text/event-stream`, where `id:` is a record's number.",
      parameters: [lastEventId],
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
    handle: withRuns(streaming(handleEvents)),
  },
  {
    method: "GET",
    path: "/runs/{runId}/files",
    query: [runsProject, urlTtl],
    operation: {
      operationId: "outputFiles",
      tag: "Files",
      summary: "The files that left a run's workspace",
      description:
        "What the request's `outputs.include` matched when the run ended or paused. They are kept as long as the run is.",
      responses: {
        200: jsonResponse("Every file, with its size and digest.", "OutputFilesResponse"),
        ...failed(400, 404, 503),
      },
    },
    handle: withRuns(streaming(handleOutputFiles)),
  },
  {
    method: "GET",
    path: "/runs/{runId}/files/{path*}",
    query: [runsProject],
    operation: {
      operationId: "outputFile",
      tag: "Files",
      summary: "The content of one of these files; its path with its slashes",
      description: "Sent as an attachment without a type to guess, since an agent wrote it.",
      responses: { 200: bytes("application/octet-stream", "The file."), ...failed(400, 404, 503) },
    },
    handle: withRuns(streaming(handleOutputFile)),
  },
  {
    method: "GET",
    path: "/runs/{runId}/patch",
    query: [runsProject],
    operation: {
      operationId: "patch",
      tag: "Files",
      summary: "What a run changed in its workspace, in git's format",
      description: "Binary files are part of it. The request asks for it with `outputs.patch`.",
      responses: { 200: bytes("text/x-diff", "The patch: `git apply` reads it."), ...failed(400, 404, 503) },
    },
    handle: withRuns(streaming(handlePatch)),
  },
  {
    method: "GET",
    path: "/runs/{runId}/bundle",
    query: [runsProject],
    operation: {
      operationId: "bundle",
      tag: "Files",
      summary: "The commit of `outputs.git`, as a bundle of git",
      description: "It needs the commit that the workspace began with, which the receipt names.",
      responses: {
        200: bytes("application/octet-stream", "The bundle: `git fetch` reads it."),
        ...failed(400, 404, 503),
      },
    },
    handle: withRuns(streaming(handleBundle)),
  },
  {
    method: "GET",
    path: "/runs/{runId}/archive",
    query: [runsProject],
    operation: {
      operationId: "archive",
      tag: "Files",
      summary: "All files that left a run's workspace, as a tar archive",
      description:
        "The same files as `GET /runs/{runId}/files` lists, with their paths and whether they are executable.",
      responses: { 200: bytes("application/x-tar", "The archive."), ...failed(400, 404, 503) },
    },
    handle: withRuns(streaming(handleArchive)),
  },
  {
    method: "POST",
    path: "/runs/{runId}/cancel",
    query: [runsProject],
    operation: {
      operationId: "cancel",
      tag: "Runs",
      summary: "Ends a run early, on any replica; it still returns its one result",
      description: "A queued run ends without having begun. The result's `stopReason` is `cancelled`.",
      responses: { 200: jsonResponse("The run is ending.", "EndedResponse"), ...failed(400, 404, 503) },
    },
    handle: withRuns(handleCancel),
  },
  {
    method: "POST",
    path: "/runs/{runId}/messages",
    query: [runsProject],
    operation: {
      operationId: "sendMessage",
      tag: "Runs",
      summary: "Hands the agent a message in the middle of its turn",
      description:
        "For agents that take one then: Claude Code, Codex, and others that announce it over ACP. It is an event `data` named `user_message` of the run. Where the agent can't take it, nothing is sent: `whenBusy` of another run waits for the turn's end, or interrupts it.",
      requestBody: body("RunMessage", true),
      responses: {
        200: jsonResponse("The agent has taken it into its turn.", "ForwardedResponse"),
        ...failed(400, 404, 408, 409, 413, 502, 503),
      },
    },
    handle: withRuns(handleMessage),
  },
  {
    method: "POST",
    path: "/runs/{runId}/interactions/{interactionId}",
    query: [runsProject],
    operation: {
      operationId: "answer",
      tag: "Questions",
      summary: "Answers a question of a run to its user",
      description:
        "A run that is held open gets it immediately. An answer to a paused run is kept until a turn of the session has used it. Each question is answered once; a second answer is refused with 404, and one that comes too late with 410.",
      requestBody: body("InteractionAnswer", true),
      responses: {
        200: jsonResponse("The answer was forwarded to the run, or stored.", "ForwardedResponse"),
        ...failed(400, 404, 408, 410, 413, 503),
      },
    },
    handle: withRuns(handleAnswer),
  },
  {
    method: "GET",
    path: "/deliveries",
    query: [deliveryState, onlyRun, afterMessage, onlyProject, limit],
    refusesOthers: true,
    operation: {
      operationId: "deliveries",
      tag: "Webhooks",
      summary: "The messages of all runs' webhooks, the newest first",
      description:
        "A page at a time: `after` is the id of the last message of the page before. Addresses aren't shown, only their hosts.",
      responses: { 200: jsonResponse("A page of them.", "DeliveriesResponse"), ...failed(400, 404, 503) },
    },
    handle: withRuns(handleDeliveries),
  },
  {
    method: "POST",
    path: "/deliveries/{deliveryId}/redeliver",
    refusesOthers: true,
    operation: {
      operationId: "redeliver",
      tag: "Webhooks",
      summary: "Sends a webhook's message again, regardless of its state",
      description:
        "Sends the same message immediately, with the same `webhook-id`, a new signature, and as many attempts as a new message.",
      responses: { 202: jsonResponse("The message is due.", "StoredDelivery"), ...failed(400, 404, 503) },
    },
    handle: withRuns(handleRedeliver),
  },
  {
    method: "GET",
    path: "/usage",
    query: [firstDay, lastDay, groupedBy, onlyProject],
    refusesOthers: true,
    operation: {
      operationId: "usage",
      tag: "Usage",
      summary: "What runs used: by day, project, agent or model",
      description:
        "Runs by outcome, tokens, US dollars and the time in sandboxes, of runs that ended on these days, over all replicas. It is kept for 400 days, also of runs that were deleted.",
      responses: { 200: jsonResponse("The groups and their total.", "UsageResponse"), ...failed(400, 503) },
    },
    handle: withRuns(handleUsage),
  },
  {
    method: "GET",
    path: "/quotas",
    query: [onlyProject],
    refusesOthers: true,
    operation: {
      operationId: "quotas",
      tag: "Usage",
      summary: "What each project with a token may use, and uses now",
      description: "Over all replicas of a store. A tenant sees its own project's.",
      responses: { 200: jsonResponse("Every project.", "QuotasResponse"), ...failed(400, 503) },
    },
    handle: withRuns(handleQuotas),
  },
  {
    method: "GET",
    path: "/interactions",
    query: [interactionState, onlyRun, onlySession, afterQuestion, onlyProject, limit],
    refusesOthers: true,
    operation: {
      operationId: "interactions",
      tag: "Questions",
      summary: "The questions of runs to their users, the newest first",
      description:
        "A page at a time: `after` is the id of the last question of the page before. Answers aren't shown.",
      responses: { 200: jsonResponse("A page of them.", "InteractionsResponse"), ...failed(400, 404, 503) },
    },
    handle: withRuns(streaming(handleInteractions)),
  },
  {
    method: "GET",
    path: "/sessions",
    query: [onlyProject, limit],
    refusesOthers: true,
    operation: {
      operationId: "sessions",
      tag: "Sessions",
      summary: "The open sessions of all replicas",
      description: "Each with the sandbox that it has, and the address of the replica that has it.",
      responses: { 200: jsonResponse("A page of them.", "SessionsResponse"), ...failed(400, 404, 503) },
    },
    handle: withRuns(handleSessions),
  },
  {
    method: "GET",
    path: "/sessions/{sessionId}/run",
    query: [onlyProject],
    refusesOthers: true,
    operation: {
      operationId: "sessionRun",
      tag: "Sessions",
      summary: "A session's newest run, as `GET /runs/{runId}` has it, also after the session has ended",
      description: "A page that knows only its chat finds the run that it follows this way.",
      responses: { 200: jsonResponse("The run.", "RunInfo"), ...failed(400, 404, 503) },
    },
    handle: withRuns(streaming(handleSessionRun)),
  },
  {
    method: "DELETE",
    path: "/sessions/{sessionId}",
    query: [sessionsProject],
    refusesOthers: true,
    operation: {
      operationId: "deleteSession",
      tag: "Sessions",
      summary: "Closes a session's sandbox and agent, and ends the run that uses it",
      description:
        "What the session kept is removed: its workspace, its home and its conversation. Snapshots of it stay. Runs that wait for it end as cancelled.",
      responses: {
        200: jsonResponse("The session has ended.", "EndedResponse"),
        ...failed(400, 404, 409, 503),
      },
    },
    handle: withRuns(handleDeleteSession),
  },
];

/** `GET /deliveries` */
async function handleDeliveries(route: StoredRoute): Promise<Response> {
  const { server, exchange, query } = route;
  const state = query.read(deliveryState);
  const { store } = server.runs;
  const ofProject = projectFilter(query, callersProjects(exchange.incoming));
  const place = await placeAfter(query.read(afterMessage), "message", async (id) => {
    const [message] = await store.deliveries({ ...ofProject, id, limit: 1 });
    return message;
  });
  const found = await store.deliveries({
    ...ofProject,
    state,
    ...(await runFilter(route)),
    after: place?.id,
    limit: query.read(limit),
  });
  return json(200, { deliveries: found.map(storedDelivery) } satisfies DeliveriesResponse);
}

/** `POST /deliveries/:deliveryId/redeliver`: the same message, under the same id, to the same address. */
async function handleRedeliver({ server, exchange, path }: StoredRoute): Promise<Response> {
  const id = path("deliveryId");
  if (!server.runs.options.sender.isConfigured)
    throw new RequestInvalid([
      {
        path: "",
        message: "needs a secret that signs webhooks: set AMBIT_WEBHOOK_SECRET, or webhooks.secret",
      },
    ]);
  const projects = callersProjects(exchange.incoming);
  const { runs } = server;
  const project = projects === "all" ? undefined : projects;
  const delivery = await runs.asking(() => runs.deliveries.again(id, project));
  if (delivery === undefined)
    throw new NotFound(`There is no delivery '${id}': its run was deleted, or it never was.`);
  return json(202, storedDelivery(delivery) satisfies StoredDelivery);
}

function storedDelivery(delivery: Delivery): StoredDelivery {
  return { ...deliveryInfo(delivery), runId: idOfRun(delivery.runId), projectId: delivery.project };
}
