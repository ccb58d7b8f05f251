import { secret } from "@ambit/core";
import { isRange } from "@ambit/egress";
import { z } from "zod";

const secretSchema = z
  .string()
  .refine(
    isSecret,
    "must be `whsec_` and 24 to 64 random bytes in base64, as `echo whsec_$(openssl rand -base64 32)` prints",
  );

/** Several, the newest first, while receivers switch over: each message is signed with all of them. */
export const webhookSecretsSchema = secret(
  z.union([secretSchema.transform((one) => [one]), z.array(secretSchema).min(1).max(3)]),
).meta({ description: "The secret that signs webhooks, or up to three, the newest first." });

/** Whether runs may have webhooks, and how they are sent. What each setting is for is in the schema itself. */
export const webhookSettingsSchema = z.strictObject({
  secret: webhookSecretsSchema.optional().meta({
    description:
      "Signs the webhooks of runs that belong to no project with tokens. `AMBIT_WEBHOOK_SECRET` overrides it. Default: such runs can't have a webhook.",
  }),
  privateHosts: z.enum(["allow", "refuse", "auto"]).default("auto").meta({
    description:
      "Whether a webhook may lead to a private or loopback address, or to one of the server's own. `auto`, the default, refuses them where the configuration has `tokens`. Link-local and metadata addresses are always refused.",
  }),
  allowedRanges: z
    .array(z.string().refine(isRange, "must be a range of addresses, such as 10.0.0.0/8 or fd00::/8"))
    .default([])
    .meta({ description: "Further ranges that a webhook may lead to." }),
  attempts: z.int().positive().max(20).default(8).meta({
    description: "Attempts before a message counts as failed.",
  }),
  retryMs: z.int().positive().max(3_600_000).default(5_000).meta({
    description:
      "Milliseconds before the second attempt. Each further pause is four times as long, up to 6 hours.",
  }),
  timeoutMs: z.int().positive().max(60_000).default(15_000).meta({
    description: "Milliseconds of one attempt.",
  }),
});
export type WebhookSettings = z.output<typeof webhookSettingsSchema>;

/** The lengths of the Standard Webhooks specification. */
function isSecret(text: string): boolean {
  const [, encoded = ""] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  const bytes = Buffer.from(encoded, "base64");
  return (
    bytes.length >= 24 &&
    bytes.length <= 64 &&
    bytes.toString("base64").replace(/=+$/, "") === encoded.replace(/=+$/, "")
  );
}
