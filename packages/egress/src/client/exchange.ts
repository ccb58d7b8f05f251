import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { KeptPieces } from "@ambit/core/plugin";
import { guardedAgents } from "./agents.js";
import type { ConnectionGuard } from "./connect.js";

export interface GuardedRequest {
  /** Default `GET`. */
  readonly method?: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

/**
 * Sends one request over a connection of its own, to an address that was checked. Redirects are not followed.
 *
 * @returns the response with its header; read or destroy its body.
 * @throws AddressRefused, ProxyFailed; Error where there is no answer, or one that changes the protocol; the signal's reason
 */
export function openResponse(
  { method = "GET", url, headers, body }: GuardedRequest,
  guard: ConnectionGuard,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const agents = guardedAgents(guard, { keepAlive: false });
  const [send, agent] =
    url.protocol === "http:" ? [requestHttp, agents.http] : ([requestHttps, agents.https] as const);
  return new Promise((resolve, reject) => {
    const request = send(url, { method, agent, headers: { ...headers, connection: "close" }, signal });
    request.once("response", (response) => {
      // Cut off, or destroyed before it was read: there may be no other listener then.
      response.on("error", () => {});
      resolve(response);
    });
    // Without this listener Node closes the connection, and no other event follows.
    request.once("upgrade", (_response, socket) => {
      socket.destroy();
      reject(Object.assign(new Error("it changed the protocol"), { code: "PROTOCOL_CHANGED" }));
    });
    request.once("error", reject);
    request.end(body);
  });
}

/**
 * The same, with the whole answer.
 *
 * @param maxBytes of the answer.
 * @throws as `openResponse`; Error for an answer that is too large or cut off
 */
export async function exchange(
  request: GuardedRequest,
  guard: ConnectionGuard,
  { maxBytes, signal }: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<{ readonly status: number; readonly body: string }> {
  const response = await openResponse(request, guard, signal);
  const { statusCode: status = 0 } = response;
  const pieces = new KeptPieces();
  let size = 0;
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > maxBytes) throw new Error(`its answer has more than ${maxBytes} bytes`);
      pieces.push(piece);
    }
  } finally {
    response.destroy();
  }
  return { status, body: pieces.take().toString() };
}
