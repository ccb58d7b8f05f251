import { z } from "zod";

/** Names one snapshot of a project. */
export const snapshotIdSchema = z
  .string()
  .regex(/^[0-9a-f]{32}$/, "must be the id of a snapshot: 32 hexadecimal digits");
