import { z } from "zod";
import { findingSchema } from "../contract/index.js";

/** The evidence of each actor, as stored for another process. */
export const storedEvidenceSchema = z.array(
  z.strictObject({
    plugin: z.string(),
    kind: z.string(),
    name: z.string(),
    /** Milliseconds since the epoch. */
    probedAt: z.number(),
    findings: z.array(findingSchema),
  }),
);
export type StoredEvidence = z.infer<typeof storedEvidenceSchema>;
