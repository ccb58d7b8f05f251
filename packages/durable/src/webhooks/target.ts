import type { RunRequest } from "@ambit/core/contract";
import type { Sealing } from "../sealing.js";
import type { Delivery, RunWebhook } from "../store/index.js";

/** The webhook of a request as it is stored: the address often holds a secret of the receiver's. */
export function sealedWebhook(
  { webhook }: Pick<RunRequest, "webhook">,
  runId: string,
  sealing: Sealing,
): RunWebhook | undefined {
  if (webhook === undefined) return undefined;
  const { url, events } = webhook;
  return { target: sealing.seal(runId, url), host: new URL(url).host, events };
}

/** @throws Error for what another key sealed */
export function urlOf({ target, runId }: Delivery, sealing: Sealing): URL {
  return new URL(String(sealing.unseal(runId, target)));
}
