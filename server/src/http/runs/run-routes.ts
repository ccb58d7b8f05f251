import { NotFound, RequestInvalid } from "@ambit/core";
import type { RunInfo, RunsResponse } from "@ambit/durable";
import { runStateSchema, type StoredRun } from "@ambit/durable/store";
import { answerSignal, leftSignal } from "../response/left-signal.js";
import { responseFormat } from "../response/response-format.js";
import { sendJson } from "../response/send.js";
import type { EndedResponse } from "../route-schemas.js";
import type { DurableServer, Exchange, ServerContext } from "../server-context.js";
import { callersProjects, isVisibleTo } from "./projects.js";
import { limitOf, projectFilter, requireKnown } from "./query.js";
import { countOf } from "./run-body.js";
import { sendRecords } from "./send-records.js";
import { deliveryInfo, resultOf, summaryOf } from "./stored-response.js";

const maxDeliveries = 100;

/** The context of a route for stored runs. */
export interface StoredRoute {
  readonly context: ServerContext;
  readonly server: DurableServer;
  readonly exchange: Exchange;
  readonly query: URLSearchParams;
}

/**
 * A run that this caller may see, without its result.
 * @throws NotFound for any other, without revealing that it exists
 */
export async function visibleRun(route: StoredRoute, id: string): Promise<StoredRun> {
  const { server, exchange } = route;
  const run = await server.durable.reader.summary(id, answerSignal(exchange.outgoing, answerMs(route)));
  if (run === undefined || !isVisibleTo(callersProjects(exchange.incoming), run)) {
    throw noRun(id);
  }
  return run;
}

const answerMs = ({ server }: StoredRoute) => server.durable.options.settings.answerTimeoutMs;

const noRun = (id: string) => new NotFound(`There is no run '${id}': it was deleted, or never started.`);

/** `GET /runs/:runId` */
export async function handleRunInfo(route: StoredRoute, id: string): Promise<void> {
  const { webhook } = await visibleRun(route, id);
  const run = await route.server.durable.get(id, answerSignal(route.exchange.outgoing, answerMs(route)));
  if (run === undefined) throw noRun(id);
  const deliveries =
    webhook === undefined
      ? undefined
      : await route.server.durable.store.deliveries({ runId: id, limit: maxDeliveries });
  const info = {
    ...{ ...summaryOf(run), result: resultOf(run) },
    ...(deliveries === undefined ? {} : { deliveries: deliveries.map(deliveryInfo) }),
  } satisfies RunInfo;
  sendJson(route.exchange.outgoing, 200, info);
}

/** `GET /runs` */
export async function handleRuns(route: StoredRoute): Promise<void> {
  const { server, exchange, query } = route;
  requireKnown(query, ["sessionId", "projectId", "state", "after", "limit"]);
  const state = query.get("state") ?? undefined;
  const parsed = runStateSchema.optional().safeParse(state);
  if (!parsed.success) {
    const message = `must be one of ${runStateSchema.options.join(", ")}`;
    throw new RequestInvalid([{ path: "state", message }]);
  }
  const runs = await server.durable.store.list({
    ...projectFilter(query, callersProjects(exchange.incoming)),
    ...(query.has("sessionId") ? { session: query.get("sessionId") ?? "" } : {}),
    ...(parsed.data === undefined ? {} : { state: parsed.data }),
    ...(query.has("after") ? { after: query.get("after") ?? "" } : {}),
    limit: limitOf(query),
  });
  if (runs.length === 0) await requirePlace(route, query.get("after"));
  sendJson(exchange.outgoing, 200, { runs: runs.map(summaryOf) } satisfies RunsResponse);
}

/** A page after a deleted run would look like the last page. @throws RequestInvalid */
async function requirePlace({ server, exchange }: StoredRoute, after: string | null): Promise<void> {
  if (after === null) return;
  const run = await server.durable.store.get(after);
  if (run !== undefined && isVisibleTo(callersProjects(exchange.incoming), run)) return;
  const message = "names no stored run: it was deleted meanwhile, so begin again without it";
  throw new RequestInvalid([{ path: "after", message }]);
}

/** `GET /runs/:runId/events`: replays, then follows. A reader may reconnect where it stopped. */
export async function handleEvents(route: StoredRoute, id: string): Promise<void> {
  const { context, server, exchange, query } = route;
  const { incoming, outgoing } = exchange;
  const accepted = responseFormat(incoming.headers.accept, "ndjson");
  const form = accepted === "json" ? "ndjson" : accepted;
  // A browser reconnects with its original URL, so the header is newer.
  const lastId = [incoming.headers["last-event-id"] ?? []].flat()[0];
  const after = countOf(
    lastId === undefined ? "after" : "Last-Event-ID",
    lastId ?? query.get("after") ?? "",
    0,
  );
  const run = await visibleRun(route, id);
  if (run.state === "ended" && after > run.events) {
    // Tells a browser's EventSource not to reconnect.
    outgoing.writeHead(204).end();
    return;
  }
  await context.readers.reading(run, () => {
    const records = server.durable.reader.follow(id, after, leftSignal(outgoing));
    return sendRecords(id, form, records, outgoing, context);
  });
}

/** `DELETE /runs/:runId` */
export async function handleDelete(route: StoredRoute, id: string): Promise<void> {
  const run = await visibleRun(route, id);
  if (run.state !== "ended") {
    const message = "names a run that hasn't ended: cancel it first (POST /runs/{runId}/cancel)";
    throw new RequestInvalid([{ path: "runId", message }]);
  }
  await route.server.durable.store.delete(id);
  sendJson(route.exchange.outgoing, 200, { ok: true, ended: true } satisfies EndedResponse);
}

/** `POST /runs/:runId/cancel`, on any replica. */
export async function handleStoredCancel(route: StoredRoute, id: string): Promise<void> {
  await visibleRun(route, id);
  const { durable } = route.server;
  await durable.asking(() => durable.cancel(id));
  sendJson(route.exchange.outgoing, 200, { ok: true, ended: true } satisfies EndedResponse);
}
