import { setTimeout as pause } from "node:timers/promises";
import { HttpCaller } from "../../http.js";
import { demoRequest } from "../../subjects/server/requests.js";

/** Runs of honest callers, who aren't attacking. */
export interface HonestOutcomes {
  /** Answered as they should be. */
  ok: number;
  /** Turned away with 429 or 503: the server has no room. */
  refused: number;
  /** Any other answer, or none. */
  failed: number;
}

/** Milliseconds between two runs of one caller. */
const everyMs = 250;

/** One caller that starts small runs, and one that chats in a warm session, until the signal aborts. */
export async function honestCallers(
  url: string,
  token: string,
  honest: HonestOutcomes,
  signal: AbortSignal,
): Promise<void> {
  await Promise.all([
    repeat(new HttpCaller(url, token), demoRequest("say hello"), honest, signal),
    repeat(
      new HttpCaller(url, token),
      demoRequest("say hello", { sessionId: "honest-chat" }),
      honest,
      signal,
    ),
  ]);
}

async function repeat(
  caller: HttpCaller,
  body: string,
  honest: HonestOutcomes,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const { status, text } = await caller.post("/run", body).catch(() => ({ status: 0, text: "" }));
    if (status === 200 && text.startsWith('{"ok":true')) honest.ok += 1;
    else if (status === 429 || status === 503) honest.refused += 1;
    else if (!signal.aborted) honest.failed += 1;
    await pause(everyMs);
  }
  caller.close();
}
