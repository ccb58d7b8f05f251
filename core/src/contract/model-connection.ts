import { z } from "zod";
import { environmentNameSchema, environmentSchema, environmentValueSchema } from "./environment.js";
import { headersSchema, httpUrlSchema } from "./http.js";

/** How the agent reaches its model, and with which credential. */
export const modelConnectionSchema = z.strictObject({
  /** `anthropic`, `openai`, `google`, … */
  provider: z.string().optional(),
  deployment: z.string().optional(),
  endpoint: z
    .strictObject({
      baseUrl: httpUrlSchema.optional(),
      apiVersion: z.string().optional(),
      region: z.string().optional(),
      headers: headersSchema.optional(),
    })
    .optional(),
  credentialMode: z.enum(["env", "runtime_provided", "none"]).default("env"),
  /** Variables of the agent's process that are no secrets. */
  environment: environmentSchema.optional(),
  credentials: z
    .array(
      z.strictObject({
        binding: z.strictObject({ kind: z.literal("environment"), name: environmentNameSchema }),
        value: environmentValueSchema,
        usage: z.enum(["opaque_http", "local_use"]).default("opaque_http"),
      }),
    )
    .default([]),
});
export type ModelConnection = z.infer<typeof modelConnectionSchema>;
