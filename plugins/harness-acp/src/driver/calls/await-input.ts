import { setTimeout as delay } from "node:timers/promises";
import type { ToolCalls } from "./tool-calls.js";

/** How long a question waits for the input of its call, in milliseconds. */
const limitMs = 500;
const lookMs = 5;

/** Settles when the call's input is known, the turn stops, or the moment is over: there may be none. */
export async function inputTold(
  tools: Pick<ToolCalls, "isInputTold">,
  id: string,
  stopped: () => boolean,
): Promise<void> {
  for (const end = Date.now() + limitMs; Date.now() < end && !stopped(); ) {
    if (tools.isInputTold(id)) return;
    await delay(lookMs);
  }
}
