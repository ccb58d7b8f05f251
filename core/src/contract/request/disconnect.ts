import { z } from "zod";
import type { RunRequest } from "./request.js";

/** What becomes of a run whose reader leaves before its result. */
export const onDisconnectSchema = z.enum(["cancel", "continue"]);

/**
 * What becomes of this run when its reader leaves. Default: a run of a session goes on, since the session's next turn
 * builds on it; another is cancelled, since its result could reach nobody.
 */
export function onDisconnectOf({
  onDisconnect,
  sessionId,
}: Pick<RunRequest, "onDisconnect" | "sessionId">): z.infer<typeof onDisconnectSchema> {
  return onDisconnect ?? (sessionId === undefined ? "cancel" : "continue");
}
