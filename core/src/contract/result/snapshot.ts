import { z } from "zod";
import { snapshotIdSchema } from "../values/names.js";

const contentShape = {
  /** The digest of its archive, in hexadecimal. */
  sha256: z.string(),
  /** The size of its archive. */
  bytes: z.int(),
  /** The number of its files, folders and links. */
  entries: z.int(),
};

/** A stored copy of a session's workspace and home. */
export const snapshotInfoSchema = z.strictObject({
  id: snapshotIdSchema,
  /** The session that it is a copy of; an imported snapshot keeps that of the place where it was exported. */
  sessionId: z.string(),
  /** The backend whose sandboxes can begin with it. */
  sandbox: z.string(),
  /** When it was taken (ISO 8601). */
  createdAt: z.string(),
  ...contentShape,
  /** The number of devices, pipes and sockets, which a snapshot leaves out. */
  skipped: z.int(),
});
export type SnapshotInfo = z.infer<typeof snapshotInfoSchema>;

/** The origin of a forked session. */
export const forkReceiptSchema = z.strictObject({
  snapshot: snapshotIdSchema.optional(),
  session: z.string().optional(),
  ...contentShape,
});
export type ForkReceipt = z.infer<typeof forkReceiptSchema>;
