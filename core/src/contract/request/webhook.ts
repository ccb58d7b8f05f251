import { z } from "zod";
import { httpUrlSchema } from "../values/http.js";
import { secret } from "../values/secret.js";

/** The events of webhooks, named as the Standard Webhooks specification recommends. */
export const webhookEventSchema = z.enum([
  "run.finished",
  "run.failed",
  "interaction.requested",
  "interaction.expired",
]);

/** Characters of a receiver's address. */
const maxUrlLength = 2_048;

export const webhookSchema = z.strictObject({
  url: secret(httpUrlSchema.max(maxUrlLength), "address").meta({
    description:
      "The receiver's address. The runner posts to it directly; redirects are not followed. The store holds it encrypted.",
  }),
  events: z
    .array(webhookEventSchema)
    .min(1)
    .max(webhookEventSchema.options.length)
    .default(webhookEventSchema.options)
    .meta({
      description: `What is sent: \`${webhookEventSchema.options.join("`, `")}\`. Default: all of them. A paused run has finished, with the \`stopReason\` \`paused\`.`,
    }),
});
export type Webhook = z.infer<typeof webhookSchema>;
