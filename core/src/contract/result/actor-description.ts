import { z } from "zod";
import { capabilitySchema } from "../capability.js";
import { receiptActorSchema } from "./receipt.js";

/** The finding of one probe about one claim. */
export const findingSchema = z.discriminatedUnion("proven", [
  z.strictObject({
    capability: capabilitySchema,
    proven: z.literal(true),
    /** How it was proven, e.g. "a connect to a host listener worked outside and failed inside". */
    how: z.string(),
    /** A known weakness of what enforces it, and its fix. The proof holds in spite of it. */
    warning: z.string().optional(),
  }),
  z.strictObject({
    capability: capabilitySchema,
    proven: z.literal(false),
    /** The host's own message if there is one: `bwrap: No permissions to create new namespace`. */
    reason: z.string(),
    /** The remedy for a deployer: a command, a flag, another backend. */
    fix: z.string(),
  }),
]);
export type Finding = z.infer<typeof findingSchema>;

/** What an actor claims, and what its probe found on this host. */
export const actorDescriptionSchema = receiptActorSchema.pick({ kind: true, name: true, site: true }).extend({
  /** The plugin that the actor belongs to. */
  plugin: z.string(),
  claims: z.array(capabilitySchema),
  findings: z.array(findingSchema),
  probedAt: z.iso.datetime(),
});
export type ActorDescription = z.infer<typeof actorDescriptionSchema>;
