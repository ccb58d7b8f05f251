import { idOfRun, NotFound, RequestInvalid } from "@ambit/core";
import type { DeliveriesResponse, StoredDelivery } from "@ambit/durable";
import type { Delivery } from "@ambit/durable/store";
import { callersProjects } from "../../tenants/caller.js";
import { json } from "../response/send.js";
import { failed, jsonResponse } from "../route/responses.js";
import { type HttpRoute, type StoredRoute, stored } from "../route/route.js";
import { runFilter } from "./find-run.js";
import {
  afterMessage,
  deliveryState,
  limit,
  onlyProject,
  onlyRun,
  placeAfter,
  projectFilter,
} from "./parameters.js";
import { deliveryInfo } from "./stored-response.js";

/** Messages of runs' webhooks. */
export const deliveryRoutes: readonly HttpRoute[] = [
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
    handle: stored(handleDeliveries),
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
    handle: stored(handleRedeliver),
  },
];

/** `GET /deliveries` */
async function handleDeliveries(route: StoredRoute): Promise<Response> {
  const { server, query } = route;
  const state = query.read(deliveryState);
  const { store } = server.runs;
  const ofProject = projectFilter(route);
  const place = await placeAfter(query.read(afterMessage), "message", async (id) => {
    const [message] = await store.deliveries({ ...ofProject, id, limit: 1 });
    return message;
  });
  const messages = await store.deliveries({
    ...ofProject,
    state,
    ...(await runFilter(route)),
    after: place?.id,
    limit: query.read(limit),
  });
  return json(200, { deliveries: messages.map(storedDelivery) } satisfies DeliveriesResponse);
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
