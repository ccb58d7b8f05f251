import { type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { Socket } from "node:net";
import { KeptPieces, messageOf } from "@ambit/core/plugin";
import { type ConnectionGuard, guardedAgents } from "./agents.js";

export interface HttpRequest {
  /** Default `GET`. */
  readonly method?: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
}

export interface HttpClientOptions {
  /** Milliseconds that an unused connection waits for its next request. Default 4,000; 0: each request has a new one. */
  readonly idleMs?: number;
  /** Milliseconds until there is a connection, its TLS handshake included. Default 10,000. */
  readonly connectMs?: number;
  /** Milliseconds from the request to the response's header. Default: only the signal limits it. */
  readonly firstByteMs?: number;
  /** Milliseconds that a reader waits for the next bytes of a body. Default: only the signal limits it. */
  readonly silenceMs?: number;
}

export interface SendOptions {
  /** Ends the request, and the response while it is read. */
  readonly signal: AbortSignal;
  /** Called when the connection is ready, before the first byte of the request. What it throws ends the request. */
  readonly onConnected?: () => void;
}

/**
 * The HTTP client of everything that the runner itself connects to. Each connection leads to an address that was checked. It
 * follows no redirect, unpacks no body, and repeats no request.
 */
export class HttpClient {
  readonly #agents: ReturnType<typeof guardedAgents>;
  readonly #options: HttpClientOptions & { readonly connectMs: number };
  readonly #openRequests = new Map<ClientRequest, (error: Error) => void>();
  #isClosed = false;

  constructor(
    guard: ConnectionGuard,
    { idleMs = 4_000, connectMs = 10_000, ...limits }: HttpClientOptions = {},
  ) {
    this.#agents = guardedAgents(guard, idleMs === 0 ? {} : { keepAlive: true, timeout: idleMs });
    this.#options = { connectMs, ...limits };
  }

  /**
   * @returns the response with its header; read or destroy its body.
   * @throws AddressRefused, ProxyFailed; Error where there is no answer, or one that changes the protocol; the signal's reason
   */
  send(
    { method = "GET", url, headers, body }: HttpRequest,
    { signal, onConnected }: SendOptions,
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#isClosed) throw closed();
      const isTls = url.protocol !== "http:";
      const request = (isTls ? requestHttps : requestHttp)(url, {
        method,
        agent: isTls ? this.#agents.https : this.#agents.http,
        // Without a length, Node would send the body of a DELETE as the connection's next request.
        headers: body === undefined ? headers : { "content-length": Buffer.byteLength(body), ...headers },
      });
      const { connectMs, firstByteMs, silenceMs } = this.#options;
      let response: IncomingMessage | undefined;
      const end = (error: Error) => {
        response?.destroy(error);
        request.destroy(error);
        forget();
      };
      const fail = (error: unknown) => {
        reject(error);
        end(error instanceof Error ? error : new Error(messageOf(error)));
      };
      const timeLimit = (ms: number, missing: string) =>
        setTimeout(() => fail(timedOut(`no ${missing} within ${ms} ms`)), ms);
      let limit: NodeJS.Timeout | undefined = timeLimit(connectMs, "connection");
      const abort = () => fail(signal.reason);
      const forget = () => {
        clearTimeout(limit);
        signal.removeEventListener("abort", abort);
        this.#openRequests.delete(request);
      };
      signal.addEventListener("abort", abort, { once: true });
      this.#openRequests.set(request, fail);
      request.on("error", fail);
      request.once("close", forget);
      request.once("socket", (socket: Socket) => {
        const sendRequest = () => {
          clearTimeout(limit);
          try {
            onConnected?.();
          } catch (error) {
            return fail(error);
          }
          limit = firstByteMs === undefined ? undefined : timeLimit(firstByteMs, "response");
          request.end(body);
        };
        if (request.reusedSocket || !(isTls || socket.connecting)) sendRequest();
        else socket.once(isTls ? "secureConnect" : "connect", sendRequest);
      });
      // Without this listener Node closes the connection, and no other event follows.
      request.once("upgrade", (_response, socket) => {
        socket.destroy();
        fail(Object.assign(new Error("it changed the protocol"), { code: "PROTOCOL_CHANGED" }));
      });
      request.once("response", (message) => {
        clearTimeout(limit);
        response = message;
        // A body that is cut off, or destroyed before it was read, may have no other listener.
        message.on("error", () => {});
        if (silenceMs !== undefined) endSilent(message, silenceMs, fail);
        resolve(message);
      });
    });
  }

  /** Ends every connection; open requests fail. */
  close(): void {
    this.#isClosed = true;
    for (const fail of [...this.#openRequests.values()]) fail(closed());
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }
}

/** Fails where a reader has waited for bytes that long. A body that waits for its reader is never silent. */
function endSilent(message: IncomingMessage, silenceMs: number, fail: (error: Error) => void): void {
  const { socket } = message;
  const judge = () => {
    if (message.readableLength > 0) socket.setTimeout(silenceMs);
    else fail(timedOut(`no bytes within ${silenceMs} ms`));
  };
  socket.setTimeout(silenceMs);
  socket.on("timeout", judge);
  message.once("close", () => socket.off("timeout", judge));
}

function timedOut(message: string): Error {
  return Object.assign(new Error(message), { code: "ETIMEDOUT" });
}

function closed(): Error {
  return new Error("the HTTP client is closed");
}

/** Sends one request over a connection of its own. @throws as `HttpClient.send` */
export function openResponse(
  request: HttpRequest,
  guard: ConnectionGuard,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new HttpClient(guard, { idleMs: 0 }).send(request, { signal });
}

/**
 * The same, with the whole answer.
 *
 * @param maxBytes of the answer.
 * @throws as `openResponse`; Error for an answer that is too large or cut off
 */
export async function exchange(
  request: HttpRequest,
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
