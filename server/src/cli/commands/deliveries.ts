import { table } from "../display/table.js";
import { exitCodes } from "../exit-codes.js";
import { type ClientOptions, CommandRefused, connect } from "../server-client.js";
import { withIdMeant } from "../typed-id.js";

export interface DeliveriesCommandOptions extends ClientOptions {
  readonly state?: string;
  readonly run?: string;
  readonly json?: boolean;
}

/** `ambit deliveries`: webhook messages and their state. */
export async function deliveries(options: DeliveriesCommandOptions): Promise<number> {
  const filter = {
    ...(options.state === undefined ? {} : { state: options.state }),
    ...(options.run === undefined ? {} : { runId: options.run }),
  };
  const listed = await Array.fromAsync(connect(options).eachDelivery(filter));
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify({ deliveries: listed }, undefined, 2)}\n`);
    return exitCodes.ok;
  }
  const rows = listed.map(({ id, event, state, attempts, host, runId, error = "" }) => {
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
  const client = connect(options);
  if ((ids.length === 0) !== (options.failed === true))
    throw new CommandRefused("name messages, or say --failed for all that failed");
  const sendAgain = async (id: string) => {
    const { event, host } = await client.redeliver(id);
    process.stdout.write(`${id}: ${event} is sent to ${host} again\n`);
  };
  const listIds = async () => (await Array.fromAsync(client.eachDelivery())).map(({ id }) => id);
  for (const typed of ids) await withIdMeant("message", typed, sendAgain, listIds);
  if (ids.length > 0) return exitCodes.ok;
  // The list goes from the newest to the oldest, so that a message that fails again meanwhile isn't listed twice.
  for await (const { id } of client.eachDelivery({ state: "failed" })) await sendAgain(id);
  return exitCodes.ok;
}
