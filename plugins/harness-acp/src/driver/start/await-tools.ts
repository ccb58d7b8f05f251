import { setTimeout as delay } from "node:timers/promises";
import type { PublishedServer } from "@ambit/core/plugin";

/** Milliseconds between two looks. */
const lookMs = 5;

/**
 * Resolves when the agent has asked every server for its tools, or the limit is over: some agents send the first
 * prompt to their model while they still look for tools, and the model then sees none.
 */
export async function toolsListed(
  servers: readonly PublishedServer[],
  limitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const end = Date.now() + limitMs;
  while (!servers.every((server) => server.listed()) && Date.now() < end && !signal.aborted) {
    await delay(lookMs);
  }
}
