import type { Log } from "@ambit/core/plugin";
import type { Profile } from "../../profiles/profile.js";
import { cancelledElicitation } from "../calls/elicitation.js";
import { cancelled } from "../calls/permission-options.js";
import { readRestoredSession } from "../wire/answers.js";
import type { AcpConnection } from "../wire/connection.js";

export interface Restoration {
  readonly connection: AcpConnection;
  readonly profile: Profile;
  /** The parameters of `session/new`. */
  readonly session: object;
  /** The conversation to resume. */
  readonly resume: string | undefined;
  readonly method: "session/resume" | "session/load" | undefined;
  /** Aborts when the run is over before its agent has started. */
  readonly signal: AbortSignal;
  readonly log: Log;
}

/** Resumes the conversation that `resume` names; undefined if there is none, or the agent has lost it. */
export async function restoreConversation(restoration: Restoration) {
  const { connection, profile, session, resume, method, signal, log } = restoration;
  if (resume === undefined || method === undefined) return undefined;
  try {
    // Replayed messages are discarded: no turn is open, and the caller has the history already.
    const answer = await connection.request(
      method,
      { ...session, sessionId: resume },
      "its session's return",
      signal,
    );
    const restored = { ...readRestoredSession(answer, profile.title), sessionId: resume };
    if (method === "session/load" && profile.quirks.replaysLate) await replayOver(connection, resume);
    return restored;
  } catch (error) {
    if (connection.closed || signal.aborted) throw error;
    log.info({ agent: profile.title, error }, "the earlier conversation doesn't exist: starting a new one");
    return undefined;
  }
}

/**
 * Waits until the replay has arrived completely. The agent writes its messages in order, each update as soon as the
 * last is sent, so a response without an update before it shows that none is left.
 */
async function replayOver(connection: AcpConnection, sessionId: string): Promise<void> {
  let updates = 0;
  connection.receive({
    update: (params) => {
      if (params.sessionId === sessionId) updates += 1;
      connection.state.note(params.update);
    },
    permission: async () => cancelled,
    elicitation: async () => cancelledElicitation,
    room: () => undefined,
  });
  try {
    for (let before = -1; before !== updates; ) {
      before = updates;
      await connection.roundTrip();
    }
  } finally {
    connection.receive(undefined);
  }
}
