import type { ServerResponse } from "node:http";
import { messageOf, NotFound } from "@ambit/core";
import type { RunnerState } from "@ambit/core/plugin";
import type { Backlog } from "@ambit/durable/store";
import type { Runner } from "@ambit/runner";
import { send } from "./response/send.js";
import type { ServerContext } from "./server-context.js";

/** Milliseconds that a scrape waits for the store, so that it doesn't delay the other figures. */
const backlogMs = 2_000;

/** The scrape in progress of each runner: those who ask meanwhile get its figures too. */
const scrapes = new WeakMap<Runner, Promise<readonly string[]>>();

/**
 * The figures of all observers, in the Prometheus text format.
 * @throws NotFound where none counts anything
 */
export async function sendMetrics(response: ServerResponse, context: ServerContext): Promise<void> {
  const { runner } = context;
  const scrape = scrapes.get(runner) ?? scrapeAll(context).finally(() => scrapes.delete(runner));
  scrapes.set(runner, scrape);
  const texts = await scrape;
  if (texts.length === 0) throw new NotFound("There are no metrics here: load @ambit/metrics-prometheus.");
  send(response, 200, "text/plain; version=0.0.4; charset=utf-8", texts.join(""));
}

async function scrapeAll(context: ServerContext): Promise<readonly string[]> {
  const { runner } = context;
  const state = await stateOf(context);
  const scraped = await Promise.all(runner.registry.observers.map((observer) => observer.scrape?.(state)));
  return scraped.filter((text) => text !== undefined);
}

/** The present state of the runner and of its store. */
export async function stateOf(
  context: Pick<ServerContext, "runner" | "served" | "log">,
): Promise<RunnerState> {
  const backlog = await backlogOf(context);
  return { ...context.runner.state(), backlog };
}

/** Undefined if the store doesn't respond in time. */
async function backlogOf({
  served,
  log,
}: Pick<ServerContext, "served" | "log">): Promise<Backlog | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, backlogMs, undefined);
  });
  try {
    return await Promise.race([served().then(({ runs }) => runs.store.backlog()), late]);
  } catch (error) {
    log.warn({ error: messageOf(error) }, "the store could not be asked for its figures");
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
