import { isPattern, minimumBoundarySchema } from "@ambit/runner";
import { z } from "zod";
import { webhookSecretsSchema } from "../webhooks/settings.js";

// A pattern that can never match would look like protection.
const patternSchema = z
  .string()
  .min(1)
  .refine(isPattern, "must be a tool's Name, or Name(prefix:*)")
  .refine(
    (pattern) => !/^[^(]*[*?]/.test(pattern),
    "must name the tool: a name has no wildcard, and `true` in place of the list denies every call",
  );

/** Every call (`true`), or calls that match a pattern: `Name`, `Name(prefix:*)`. */
export const denialSchema = z.union([z.literal(true), z.array(patternSchema)]);

const count = z.int().positive();

/** What a project may use, on all replicas of a store together. */
const quotasSchema = z.strictObject({
  concurrentRuns: count.optional().meta({ description: "Runs in progress." }),
  runsPerMinute: count
    .max(100_000)
    .optional()
    .meta({ description: "Runs that begin within any 60 seconds." }),
  sessions: count.optional().meta({ description: "Named sessions that are open." }),
  usdPerDay: z.number().positive().optional().meta({
    description: "US dollars of models with a price, in a day of UTC. The run that exceeds them may finish.",
  }),
});

/** One caller's token, and what it may do. */
const tenantSchema = z.strictObject({
  token: z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/, "must be the hash of a token: `ambit token` makes both")
    .meta({
      description: "The token's hash, as `ambit token` prints it. The token itself is stored nowhere.",
    }),
  project: z.string().trim().min(1).max(256).meta({
    description: "The project of all its runs, sessions and interactions; a request can't name another.",
  }),
  permissions: z
    .strictObject({
      deny: denialSchema.default([]).meta({ description: "Calls that its requests can't allow." }),
    })
    .prefault({}),
  require: minimumBoundarySchema.prefault({}).meta({
    description:
      "What the boundaries of its requests restrict at least, in addition to the server's `require`.",
  }),
  sandboxes: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .meta({ description: "Default: all that are loaded." }),
  harnesses: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .meta({ description: "Default: all that are loaded." }),
  limits: quotasSchema.prefault({}),
  webhookSecret: webhookSecretsSchema.optional().meta({
    description: "Signs the webhooks of the project's runs. Default: they can't have one.",
  }),
});

export const tenantsSchema = z
  .array(tenantSchema)
  .max(1_000)
  .refine((tenants) => new Set(tenants.map(({ token }) => token)).size === tenants.length, {
    error: "names one token twice",
  })
  .default([]);

export type Tenant = z.output<typeof tenantSchema>;
