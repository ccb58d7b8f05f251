import { idOfRun, NotFound, RequestInvalid } from "@ambit/core";
import type { DeliveriesResponse, StoredDelivery } from "@ambit/durable";
import { type Delivery, deliveryStateSchema } from "@ambit/durable/store";
import { sendJson } from "../response/send.js";
import { runFilter } from "./find-run.js";
import { callersProjects } from "./projects.js";
import { limitOf, projectFilter, requireKnown } from "./query.js";
import { deliveryInfo } from "./stored-response.js";
import type { StoredRoute } from "./stored-route.js";

/** `GET /deliveries` */
export async function handleDeliveries(route: StoredRoute): Promise<void> {
  const { server, exchange, query } = route;
  requireKnown(query, ["state", "runId", "projectId", "after", "limit"]);
  const state = deliveryStateSchema.optional().safeParse(query.get("state") ?? undefined);
  if (!state.success) {
    const message = `must be one of ${deliveryStateSchema.options.join(", ")}`;
    throw new RequestInvalid([{ path: "state", message }]);
  }
  const found = await server.runs.store.deliveries({
    ...projectFilter(query, callersProjects(exchange.incoming)),
    ...(state.data === undefined ? {} : { state: state.data }),
    ...(await runFilter(route)),
    ...(query.has("after") ? { after: query.get("after") ?? "" } : {}),
    limit: limitOf(query),
  });
  sendJson(exchange.outgoing, 200, { deliveries: found.map(storedDelivery) } satisfies DeliveriesResponse);
}

/** `POST /deliveries/:deliveryId/redeliver`: the same message, under the same id, to the same address. */
export async function handleRedeliver({ server, exchange, query }: StoredRoute, id: string): Promise<void> {
  requireKnown(query, []);
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
  sendJson(exchange.outgoing, 202, storedDelivery(delivery) satisfies StoredDelivery);
}

function storedDelivery(delivery: Delivery): StoredDelivery {
  return { ...deliveryInfo(delivery), runId: idOfRun(delivery.runId), projectId: delivery.project };
}
