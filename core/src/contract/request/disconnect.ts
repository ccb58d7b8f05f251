import { z } from "zod";

/** What happens to a run whose reader disconnects before its result. */
export const onDisconnectSchema = z.enum(["cancel", "continue"]);

/**
 * What happens to this run when its reader disconnects. Default: a run of a session continues, since the session's next
 * turn builds on it; any other is cancelled, since its result would have no reader.
 */
export function onDisconnectOf(request: {
  readonly onDisconnect?: z.infer<typeof onDisconnectSchema>;
  readonly sessionId?: string;
}): z.infer<typeof onDisconnectSchema> {
  return request.onDisconnect ?? (request.sessionId === undefined ? "cancel" : "continue");
}
