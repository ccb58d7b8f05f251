import { z } from "zod";
import { snapshotIdSchema } from "../values/names.js";

const contentShape = {
  /** Of its archive, in hex. */
  sha256: z.string(),
  /** Of its archive. */
  bytes: z.int(),
  /** Files, folders and links. */
  entries: z.int(),
};

/** A session's workspace and home, kept. */
export const snapshotInfoSchema = z.strictObject({
  id: snapshotIdSchema,
  /** The session that it was taken of; of an imported one, where it was exported. */
  sessionId: z.string(),
  /** The backend whose sandboxes can have it. */
  sandbox: z.string(),
  /** When (ISO 8601). */
  createdAt: z.string(),
  ...contentShape,
  /** Devices, pipes and sockets, which aren't in it. */
  skipped: z.int(),
});
export type SnapshotInfo = z.infer<typeof snapshotInfoSchema>;

/** What a forked session began as a copy of. */
export const forkReceiptSchema = z.strictObject({
  snapshot: snapshotIdSchema.optional(),
  session: z.string().optional(),
  ...contentShape,
});
export type ForkReceipt = z.infer<typeof forkReceiptSchema>;
