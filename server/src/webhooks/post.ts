import { codeOf } from "@ambit/core";
import type { UpstreamProxy } from "@ambit/core/plugin";
import type { WebhookResponse } from "@ambit/durable";
import { type AddressPolicy, AddressRefused, whyForbidden } from "@ambit/egress";
import { openResponse } from "@ambit/egress/client";

/** Bytes of a receiver's response that are read: only its status counts. */
const maxResponseBytes = 16 * 1_024;
/** Seconds in `Retry-After` that count, or a date. */
const seconds = /^\d{1,6}$/;

export interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Posts once, over a separate connection, to an address that was checked. Redirects are not followed: they would lead
 * to another address than the caller named. Never rejects.
 */
export async function post(
  { url, headers, body }: Post,
  policy: AddressPolicy,
  signal: AbortSignal,
  upstreamProxy?: UpstreamProxy,
): Promise<WebhookResponse> {
  const whyClosed = (address: string, port: number) => whyForbidden([policy], address, port);
  try {
    const guard = { whyClosed, upstreamProxy };
    const response = await openResponse({ method: "POST", url, headers, body }, guard, signal);
    await readToEnd(response);
    signal.throwIfAborted();
    return answerOf(response.statusCode ?? 0, response.headers["retry-after"]);
  } catch (error) {
    if (error instanceof AddressRefused) return refused;
    if (signal.aborted) return { delivered: false, error: "no answer in time" };
    const code = codeOf(error);
    return { delivered: false, error: `could not be reached${code === undefined ? "" : ` (${code})`}` };
  }
}

const refused: WebhookResponse = {
  delivered: false,
  error: "the server's operator refuses its address",
  isFinal: true,
};

/** As far as a response is read. Its status has already arrived, so a connection that breaks now doesn't matter. */
async function readToEnd(response: AsyncIterable<Buffer>): Promise<void> {
  let size = 0;
  try {
    for await (const chunk of response) {
      size += chunk.length;
      if (size > maxResponseBytes) return;
    }
  } catch {}
}

function answerOf(status: number, retryAfter: string | undefined): WebhookResponse {
  if (status >= 200 && status < 300) return { delivered: true, status };
  const redirects = status >= 300 && status < 400;
  return {
    delivered: false,
    status,
    error: redirects ? `HTTP ${status}: redirects are not followed` : `HTTP ${status}`,
    // 410 Gone: the receiver doesn't want further attempts.
    isFinal: status === 410,
    ...(retryAfter === undefined || !seconds.test(retryAfter)
      ? {}
      : { retryAfterMs: Number(retryAfter) * 1_000 }),
  };
}
