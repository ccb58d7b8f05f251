import { idOfRun, NotFound, RequestInvalid, SessionElsewhere } from "@ambit/core";
import { validBody } from "@ambit/core/plugin";
import type { RunInfo, RunRequestResponse, RunsResponse, Sealing } from "@ambit/durable";
import type { StoredRun } from "@ambit/durable/store";
import { z } from "zod";
import { callerOf } from "../../tenants/caller.js";
import { responseFormat, sendRecords } from "../response/records.js";
import { answerSignal, json, leftSignal, sendLargeJson } from "../response/send.js";
import { countOf } from "../route/query.js";
import { body, failed, jsonResponse, reference } from "../route/responses.js";
import { type HttpRoute, type StoredRoute, stored, streaming } from "../route/route.js";
import { type EndedResponse, type ForwardedResponse, runMessageSchema } from "../route-schemas.js";
import { lastRun, noRun, visibleRun } from "./find-run.js";
import {
  afterRecord,
  afterRun,
  lastEventId,
  limit,
  onlyAsking,
  onlyHarness,
  onlyProject,
  onlySandbox,
  onlySession,
  placeAfter,
  projectFilter,
  runOutcome,
  runState,
  runsProject,
  sessionFilter,
} from "./parameters.js";
import { deliveryInfo, resultOf, summaryOf } from "./stored-response.js";

/** The runs that the server keeps, and their logs. */
export const runRoutes: readonly HttpRoute[] = [
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
    handle: stored(handleRuns),
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
    handle: stored(streaming(handleRunInfo)),
  },
  {
    method: "GET",
    path: "/runs/{runId}/request",
    query: [runsProject],
    operation: {
      operationId: "runRequest",
      tag: "Runs",
      summary: "The request of a run, to begin it again, with `[redacted]` in place of each secret",
      description:
        "Kept with the run, encrypted, up to 1 MiB. Of a larger one, each text of more than 64 KiB is `[redacted]` too, such as an image.",
      responses: { 200: jsonResponse("The request.", "RunRequestResponse"), ...failed(400, 404, 503) },
    },
    handle: stored(handleRunRequest),
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
    handle: stored(handleDelete),
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
    handle: stored(streaming(handleEvents)),
  },
];

/** What a caller does to a run under way. */
export const runCommandRoutes: readonly HttpRoute[] = [
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
    handle: stored(handleCancel),
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
    handle: stored(handleMessage),
  },
];

const maxDeliveries = 100;

/** `GET /runs/:runId` */
async function handleRunInfo(route: StoredRoute): Promise<void> {
  await sendRunInfo(route, await visibleRun(route, route.path("runId")));
}

export async function sendRunInfo(route: StoredRoute, { id: key, webhook }: StoredRun): Promise<void> {
  const { runs } = route.server;
  const { outgoing } = route.exchange;
  const waits = answerSignal(outgoing, runs.options.settings.answerTimeoutMs);
  const run = await runs.get(key, waits);
  if (run === undefined) throw noRun(idOfRun(key));
  using _unread = route.context.unread.hold(run.result?.length ?? 0, outgoing);
  // A page has no business with the recipients of the platform's messages.
  const isForPage = callerOf(route.exchange.incoming).kind === "page";
  const deliveries =
    webhook === undefined || isForPage
      ? undefined
      : await runs.store.deliveries({ runId: key, limit: maxDeliveries });
  const info = {
    ...summaryOf(run),
    result: resultOf(run),
    ...(deliveries === undefined ? {} : { deliveries: deliveries.map(deliveryInfo) }),
  } satisfies RunInfo;
  await sendLargeJson(outgoing, 200, info);
}

/** `GET /runs/:runId/request`: what the run was begun with, without its secrets. A page doesn't get it: the request is its platform's. */
async function handleRunRequest(route: StoredRoute): Promise<Response> {
  const { runs, sealing } = route.server;
  const { id: key } = await visibleRun(route, route.path("runId"));
  const run = await runs.get(
    key,
    answerSignal(route.exchange.outgoing, runs.options.settings.answerTimeoutMs),
  );
  if (run === undefined) throw noRun(idOfRun(key));
  const copy = run.sealedCopy === undefined ? undefined : unsealed(sealing, key, run.sealedCopy);
  if (copy === undefined)
    throw new NotFound(
      `The request of the run '${idOfRun(key)}' isn't kept: it waits in the queue, has more than 1 MiB without its long texts, or came to an earlier version or with another interactions key.`,
    );
  return json(200, { request: copy.request } satisfies RunRequestResponse);
}

function unsealed(sealing: Sealing, key: string, copy: string) {
  try {
    return { request: z.record(z.string(), z.unknown()).parse(sealing.unseal(key, copy)) };
  } catch {
    return undefined;
  }
}

/** `GET /runs` */
async function handleRuns(route: StoredRoute): Promise<Response> {
  const { server, query } = route;
  const place = await placeAfter(query.read(afterRun), "run", (after) => lastRun(route, after));
  const runs = await server.runs.store.list({
    ...projectFilter(route),
    ...sessionFilter(route),
    state: query.read(runState),
    outcome: query.read(runOutcome),
    asking: query.read(onlyAsking) !== undefined,
    harness: query.read(onlyHarness),
    sandbox: query.read(onlySandbox),
    after: place?.id,
    limit: query.read(limit),
  });
  return json(200, { runs: runs.map(summaryOf) } satisfies RunsResponse);
}

/** `GET /runs/:runId/events`: replays, then follows. A reader may reconnect where it stopped. */
async function handleEvents(route: StoredRoute): Promise<void> {
  const id = route.path("runId");
  const { context, server, exchange, query } = route;
  const { incoming, outgoing } = exchange;
  const accepted = responseFormat(incoming.headers.accept, "ndjson");
  const form = accepted === "json" ? "ndjson" : accepted;
  // A browser reconnects with its original URL, so the header is newer.
  const lastId = [incoming.headers["last-event-id"] ?? []].flat()[0];
  const after = lastId === undefined ? query.read(afterRecord) : countOf("Last-Event-ID", lastId, 0);
  const run = await visibleRun(route, id);
  // The next records of a run that goes on may be waited for.
  const records = run.state === "ended" ? run.events + 1 : undefined;
  if (records !== undefined && after > records) {
    const path = lastId === undefined ? afterRecord.name : "Last-Event-ID";
    const message = `names no record of this run, which has ${records}: begin again without it`;
    throw new RequestInvalid([{ path, message }]);
  }
  if (after === records) {
    // Tells a browser's EventSource not to reconnect.
    outgoing.writeHead(204).end();
    return;
  }
  const left = leftSignal(outgoing);
  // Before the response begins.
  await server.runs.requireKept(run.id, after, left);
  await context.readers.reading(
    run,
    () => {
      const records = server.runs.follow(run.id, after, left);
      return sendRecords(id, form, records, outgoing, context);
    },
    () => void outgoing.destroy(),
  );
}

/** `DELETE /runs/:runId` */
async function handleDelete(route: StoredRoute): Promise<Response> {
  const id = route.path("runId");
  const run = await visibleRun(route, id);
  if (run.state !== "ended") {
    const message = "names a run that hasn't ended: cancel it first (POST /runs/{runId}/cancel)";
    throw new RequestInvalid([{ path: "runId", message }]);
  }
  await route.server.runs.store.delete(run.id);
  await route.context.files.delete(run.id);
  return json(200, { ok: true, ended: true } satisfies EndedResponse);
}

/** `POST /runs/:runId/cancel`, on any replica. */
async function handleCancel(route: StoredRoute): Promise<Response> {
  const id = route.path("runId");
  const { id: key } = await visibleRun(route, id);
  const { runs } = route.server;
  await runs.asking(() => runs.cancel(key));
  return json(200, { ok: true, ended: true } satisfies EndedResponse);
}

/** Bytes of a message. */
const messageLimit = 1_048_576;

/** `POST /runs/:runId/messages`, on the replica that has the run. */
async function handleMessage(route: StoredRoute): Promise<Response> {
  const { context, server, exchange } = route;
  const run = await visibleRun(route, route.path("runId"));
  const { content } = validBody(runMessageSchema, await context.bodies.json(exchange.incoming, messageLimit));
  if (!context.runner.has(run.id)) {
    const { session, project } = run;
    const { runs } = server;
    const elsewhere =
      session === undefined || run.state !== "running"
        ? undefined
        : await runs.sessions.addressOf(session, project);
    if (session !== undefined && elsewhere !== undefined) throw new SessionElsewhere(session, elsewhere);
    const message = `names a run that is ${run.state}, and not in its turn here: send the message as another run of its session`;
    throw new RequestInvalid([{ path: "runId", message }]);
  }
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  await context.runner.steer(run.id, blocks);
  return json(200, { ok: true } satisfies ForwardedResponse);
}
