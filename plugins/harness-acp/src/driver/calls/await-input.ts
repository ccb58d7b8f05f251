import { setTimeout as delay } from "node:timers/promises";
import type { ReportedCalls } from "./reported-calls.js";

/** Milliseconds that a permission question waits for the input of its call. */
const limitMs = 500;
const pollMs = 5;

/** Settles when the call's input is known, the turn stops, or the time is over: there may be no input. */
export async function inputReported(
  tools: Pick<ReportedCalls, "isInputReported">,
  id: string,
  stopped: () => boolean,
): Promise<void> {
  for (const end = Date.now() + limitMs; Date.now() < end && !stopped(); ) {
    if (tools.isInputReported(id)) return;
    await delay(pollMs);
  }
}
