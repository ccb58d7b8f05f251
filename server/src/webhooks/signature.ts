import { Webhook } from "standardwebhooks";

/** The headers of the Standard Webhooks specification: one signature for each secret. */
export function signed(
  { id, body }: { readonly id: string; readonly body: string },
  secrets: readonly string[],
  now: Date,
): Record<string, string> {
  return {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now.getTime() / 1_000)),
    "webhook-signature": secrets.map((secret) => new Webhook(secret).sign(id, now, body)).join(" "),
  };
}
