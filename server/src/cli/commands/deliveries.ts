import { deliveriesResponseSchema, type StoredDelivery, storedDeliverySchema } from "@ambit/durable";
import { table } from "../display/table.js";
import { exitCodes } from "../exit-codes.js";
import { allOf, type PagedList, pagesOf } from "../pages.js";
import { type ClientOptions, ServerClient, ServerRefused } from "../server-client.js";
import { withIdMeant } from "../typed-id.js";

export interface DeliveriesCommandOptions extends ClientOptions {
  readonly state?: string;
  readonly run?: string;
  readonly json?: boolean;
}

/** `ambit deliveries`: webhook messages and their state. */
export async function deliveries(options: DeliveriesCommandOptions): Promise<number> {
  const client = new ServerClient(options);
  const found = await allOf(client, deliveriesOf({ state: options.state, runId: options.run }));
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify({ deliveries: found }, undefined, 2)}\n`);
    return exitCodes.ok;
  }
  const rows = found.map(({ id, event, state, attempts, host, runId, error = "" }) => {
    return [id, event, state, String(attempts), host, runId, error];
  });
  const columns = ["message", "event", "state", "attempts", "host", "run", "error"];
  process.stdout.write(table(columns, rows));
  return exitCodes.ok;
}

export interface RedeliverOptions extends ClientOptions {
  /** Every message that failed. */
  readonly failed?: boolean;
}

/** `ambit redeliver`: sends messages again, by how their ids begin, or all that failed. */
export async function redeliver(ids: readonly string[], options: RedeliverOptions): Promise<number> {
  const client = new ServerClient(options);
  if ((ids.length === 0) !== (options.failed === true))
    throw new ServerRefused("name messages, or say --failed for all that failed");
  const again = async (id: string) => {
    const path = `/deliveries/${encodeURIComponent(id)}/redeliver`;
    const { event, host } = storedDeliverySchema.parse(await client.json("POST", path));
    process.stdout.write(`${id}: ${event} is sent to ${host} again\n`);
  };
  const listIds = async () => (await allOf(client, deliveriesOf({}))).map(({ id }) => id);
  for (const typed of ids) await withIdMeant("message", typed, again, listIds);
  if (ids.length > 0) return exitCodes.ok;
  // Page by page, newest first, so that a message that fails again meanwhile isn't listed twice.
  for await (const failed of pagesOf(client, deliveriesOf({ state: "failed" }))) {
    for (const { id } of failed) await again(id);
  }
  return exitCodes.ok;
}

function deliveriesOf(filter: PagedList<StoredDelivery>["filter"]): PagedList<StoredDelivery> {
  return {
    path: "/deliveries",
    filter,
    rowsOf: (body) => deliveriesResponseSchema.parse(body).deliveries,
    idOf: ({ id }) => id,
  };
}
