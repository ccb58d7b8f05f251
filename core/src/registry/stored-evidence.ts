import { z } from "zod";
import { findingSchema } from "../contract/index.js";

/** What was seen of each actor, as another process may read it. */
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
