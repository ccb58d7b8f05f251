import { setTimeout as delay } from "node:timers/promises";
import type { PublishedServer } from "@ambit/core/plugin";

/** Milliseconds between two checks. */
const pollMs = 5;

/**
 * Resolves when the agent has listed every server's tools, or the time is over: some agents send the first prompt to
 * their model before they have listed the tools, and the model then sees none.
 */
export async function toolsListed(
  servers: readonly PublishedServer[],
  limitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const end = Date.now() + limitMs;
  while (!servers.every((server) => server.listed()) && Date.now() < end && !signal.aborted) {
    await delay(pollMs);
  }
}
