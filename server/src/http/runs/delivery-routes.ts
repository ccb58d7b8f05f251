import { idOfRun, NotFound, RequestInvalid } from "@ambit/core";
import type { DeliveriesResponse, StoredDelivery } from "@ambit/durable";
import type { Delivery } from "@ambit/durable/store";
import { json } from "../response/json-response.js";
import { runFilter } from "./find-run.js";
import { afterMessage, deliveryState, limit, placeAfter, projectFilter } from "./parameters.js";
import { callersProjects } from "./projects.js";
import { deliveryInfo } from "./stored-response.js";
import type { StoredRoute } from "./stored-route.js";

/** `GET /deliveries` */
export async function handleDeliveries(route: StoredRoute): Promise<Response> {
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
export async function handleRedeliver({ server, exchange, path }: StoredRoute): Promise<Response> {
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
