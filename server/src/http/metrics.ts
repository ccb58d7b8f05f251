import type { ServerResponse } from "node:http";
import { messageOf, NotFound } from "@ambit/core";
import type { Backlog } from "@ambit/durable/store";
import { send } from "./response/send.js";
import type { ServerContext } from "./server-context.js";

/** Milliseconds that a scrape waits for the store, so that it doesn't delay the other figures. */
const backlogMs = 2_000;

/**
 * The figures of all observers, in the Prometheus text format.
 * @throws NotFound where none counts anything
 */
export async function sendMetrics(response: ServerResponse, context: ServerContext): Promise<void> {
  const { runner } = context;
  const backlog = await backlogOf(context);
  const state = { ...runner.state(), ...(backlog === undefined ? {} : { backlog }) };
  const scraped = runner.registry.observers.map((observer) => observer.scrape?.(state));
  const texts = (await Promise.all(scraped)).filter((text) => text !== undefined);
  if (texts.length === 0) throw new NotFound("There are no metrics here: load @ambit/metrics-prometheus.");
  send(response, 200, "text/plain; version=0.0.4; charset=utf-8", texts.join(""));
}

/** Undefined without a store, or if it doesn't respond in time. */
async function backlogOf({ durable, log }: ServerContext): Promise<Backlog | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, backlogMs, undefined);
  });
  try {
    return await Promise.race([durable().then((server) => server?.durable.store.backlog()), late]);
  } catch (error) {
    log.warn({ error: messageOf(error) }, "the store could not be asked for its figures");
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
