import type { Schema } from "./api.js";
import { AmbitError } from "./errors.js";

export type WebhookMessage = Schema<"WebhookMessage">;

/** How far the sender's clock and the time on the way may differ, in seconds, as Standard Webhooks says. */
const toleranceSeconds = 300;

/**
 * Verifies a webhook as Standard Webhooks (https://www.standardwebhooks.com) specifies: HMAC-SHA256 over id, time and body.
 *
 * @param body exactly as it arrived.
 * @param secrets `whsec_…`: the one that the server signs with, or several while it changes.
 * @throws AmbitError if no secret signed it, or it is older or newer than five minutes
 */
export async function verifyWebhook(
  body: string,
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>,
  secrets: string | readonly string[],
  now: number = Date.now(),
): Promise<WebhookMessage> {
  const header = (name: string) => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    return typeof value === "string" ? value : "";
  };
  const [id, timestamp] = [header("webhook-id"), header("webhook-timestamp")];
  const age = Math.abs(now / 1_000 - Number(timestamp));
  if (id === "" || !(age <= toleranceSeconds))
    throw refused("its time or id is missing, or too far from now");
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  const signatures = header("webhook-signature")
    .split(" ")
    .filter((signature) => signature.startsWith("v1,"));
  for (const secret of [secrets].flat()) {
    const key = await crypto.subtle.importKey(
      "raw",
      bytesOf(secret.replace(/^whsec_/, "")),
      { name: "HMAC", hash: "SHA-256" },
      false,
      ["verify"],
    );
    for (const signature of signatures)
      if (await crypto.subtle.verify("HMAC", key, bytesOf(signature.slice(3)), signed))
        return JSON.parse(body);
  }
  throw refused("no secret of this receiver signed it");
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array(0);
  }
}

function refused(reason: string): AmbitError {
  return new AmbitError(`the webhook isn't valid: ${reason}`, { code: "unauthorized", retryable: false });
}
