import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { codeOf } from "@ambit/core";
import type { WebhookResponse } from "@ambit/durable";
import {
  type AddressPolicy,
  AddressRefused,
  guardedLookup,
  literalAddress,
  portOf,
  whyForbidden,
} from "@ambit/egress";

/** Bytes of a receiver's response that are read: only its status counts. */
const maxResponseBytes = 16 * 1_024;
/** Seconds in `Retry-After` that count, or a date. */
const seconds = /^\d{1,6}$/;

export interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Why no webhook may be sent to this address; undefined if it may, or if only its name is known so far. Pure. */
export function whyRefused(url: URL, policy: AddressPolicy): string | undefined {
  const address = literalAddress(url);
  return address === undefined ? undefined : whyForbidden([policy], address, portOf(url));
}

/**
 * Posts once, over a separate connection, to an address that was checked. Redirects are not followed: they would lead
 * to another address than the caller named. Never rejects.
 */
export async function post(
  { url, headers, body }: Post,
  policy: AddressPolicy,
  signal: AbortSignal,
): Promise<WebhookResponse> {
  if (whyRefused(url, policy) !== undefined) return refused;
  try {
    return await sendRequest({ url, headers, body }, policy, signal);
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

function sendRequest({ url, headers, body }: Post, policy: AddressPolicy, signal: AbortSignal) {
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  const lookup = guardedLookup((address) => whyForbidden([policy], address, portOf(url)));
  return new Promise<WebhookResponse>((resolve, reject) => {
    const request = send(url, { method: "POST", agent: false, headers, lookup, signal }, (response) => {
      const { statusCode = 0 } = response;
      let size = 0;
      response.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > maxResponseBytes) response.destroy();
      });
      // The status has already arrived, so a connection that breaks now doesn't matter.
      response.once("error", () => {});
      response.once("close", () => resolve(answerOf(statusCode, response.headers["retry-after"])));
    });
    // No other protocol is used here. Without this listener Node closes the connection, and no other event follows.
    request.once("upgrade", ({ statusCode = 0 }, socket) => {
      socket.destroy();
      resolve(answerOf(statusCode, undefined));
    });
    request.once("error", reject);
    request.end(body);
  });
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
