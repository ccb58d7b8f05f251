import { z } from "zod";
import { snapshotIdSchema } from "../values/snapshot-id.js";

/** What a new session begins as a copy of: exactly one. */
export const forkSchema = z
  .strictObject({
    session: z.string().min(1).max(256).optional().meta({
      description: "The id of a session of the same project on this runner that no run uses now.",
    }),
    snapshot: snapshotIdSchema.optional().meta({
      description: "The id of a snapshot of the same project: `POST /sessions/{sessionId}/snapshot`.",
    }),
  })
  .refine(({ session, snapshot }) => (session === undefined) !== (snapshot === undefined), {
    error: "must have either session or snapshot",
  });
export type ForkRequest = z.infer<typeof forkSchema>;
