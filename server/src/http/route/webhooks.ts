import type { JsonObject } from "@ambit/core/contract";
import { body } from "./responses.js";

const header = (name: string, description: string) => ({
  name,
  in: "header",
  required: true,
  description,
  schema: { type: "string" },
});

/** What a server posts to a request's `webhook.url`. */
export function webhooks(): JsonObject {
  return {
    run: {
      post: {
        operationId: "webhook",
        summary: "A run has ended, or asks its user something",
        description:
          "Signed by the Standard Webhooks specification: verify it with one of its libraries. Sent again until the answer is a 2xx; 410 ends that. The same message may come twice, and messages may come in another order.",
        parameters: [
          header("webhook-id", "Names the message: the same with each attempt."),
          header("webhook-timestamp", "When the attempt began, in seconds since the epoch."),
          header("webhook-signature", "`v1,` and a signature, for each secret of the server."),
        ],
        requestBody: body("WebhookMessage", true),
        responses: { "2XX": { description: "The message was received." } },
      },
    },
  };
}
