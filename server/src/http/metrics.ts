import type { ServerResponse } from "node:http";
import { NotFound } from "@ambit/core";
import type { Runner } from "@ambit/runner";
import { send } from "./response/send.js";

/**
 * What the loaded observers count, in the Prometheus text format.
 * @throws NotFound where none counts anything
 */
export async function sendMetrics(response: ServerResponse, runner: Runner): Promise<void> {
  const state = runner.state();
  const scraped = runner.registry.observers.map((observer) => observer.scrape?.(state));
  const texts = (await Promise.all(scraped)).filter((text) => text !== undefined);
  if (texts.length === 0) throw new NotFound("There are no metrics here: load @ambit/metrics-prometheus.");
  send(response, 200, "text/plain; version=0.0.4; charset=utf-8", texts.join(""));
}
