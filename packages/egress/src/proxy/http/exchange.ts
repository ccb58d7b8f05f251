import { type ClientRequest, request as httpRequest, type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Duplex, finished, pipeline } from "node:stream";
import { formatTarget, type Target } from "../../target.js";
import type { EgressLimits } from "../limits.js";
import { join } from "../tunnel/tunnel.js";
import { valuesOf } from "./destination.js";
import { copyRequestHeaders, passBody, responseHeaders } from "./messages.js";
import { bytesOf, headersOf, type OwnResponse, upstreamFailure } from "./own-response.js";

/** The destination of an allowed request, and the connection to it. */
export interface UpstreamRoute {
  readonly target: Target;
  readonly path: string;
  readonly upstream: Socket;
  /** Called if the server gives no usable answer, with the reason. */
  readonly onFailure: (reason: string) => void;
}

/** Writes the request to its connection, and the response to the client. */
export function passRequest(
  request: IncomingMessage,
  response: ServerResponse,
  route: UpstreamRoute,
  limits: EgressLimits,
): void {
  const { target, upstream } = route;
  if (response.destroyed) return void upstream.destroy();
  const outgoing = outgoingRequest(request, route, limits);
  response.once("close", () => outgoing.destroy());
  outgoing.on("error", (error: NodeJS.ErrnoException) => {
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const reason = closedEarly(error);
    route.onFailure(reason);
    const own = upstreamFailure(target, 502, reason);
    response.writeHead(own.status, own.statusText, headersOf(own));
    response.end(own.body);
  });
  // A server that responds with an upgrade that wasn't requested: Node closes the connection without an error.
  outgoing.once("close", () => {
    if (!response.headersSent && !response.destroyed) outgoing.emit("error", new Error("no answer"));
  });
  outgoing.once("response", (incoming) => {
    response.sendDate = false;
    try {
      response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, responseHeaders(incoming));
    } catch (cause) {
      outgoing.destroy(new Error("the server's header can't be passed on", { cause }));
      return;
    }
    // A stream of events has a header long before the first byte of its body.
    response.flushHeaders();
    // An error on either side destroys both: the client sees a cut body, never a complete one.
    finished(incoming, { writable: false }, (error) => {
      if (error) response.destroy();
    });
    response.once("close", () => incoming.destroy());
    passBody(incoming, response);
  });
  outgoing.setHeader("Host", hostHeader(target));
  copyRequestHeaders(request, outgoing);
  if (valuesOf(request, "transfer-encoding").length > 0) outgoing.setHeader("Transfer-Encoding", "chunked");
  else if (valuesOf(request, "content-length").length === 0) return void outgoing.end();
  outgoing.flushHeaders();
  passBody(request, outgoing);
}

/** The same for an unencrypted WebSocket: if the server agrees, both connections become one. */
export function passUpgrade(
  request: IncomingMessage,
  client: Socket,
  head: Buffer,
  route: UpstreamRoute,
  limits: EgressLimits,
): void {
  const { target } = route;
  const outgoing = outgoingRequest(request, route, limits);
  client.once("close", () => outgoing.destroy());
  outgoing.on("error", (error: NodeJS.ErrnoException) => {
    const reason = closedEarly(error);
    if (!client.destroyed) route.onFailure(reason);
    endWith(client, upstreamFailure(target, 502, reason));
  });
  outgoing.once("upgrade", (incoming, socket, upstreamHead) => {
    const headers = [...responseHeaders(incoming), "Connection", "Upgrade", "Upgrade", "websocket"];
    const lines = headers.flatMap((name, index) =>
      index % 2 === 0 ? [`${name}: ${headers[index + 1] ?? ""}`] : [],
    );
    client.write(
      Buffer.from(`${["HTTP/1.1 101 Switching Protocols", ...lines].join("\r\n")}\r\n\r\n`, "latin1"),
    );
    client.write(upstreamHead);
    join(client, head, socket, limits);
  });
  outgoing.once("response", (incoming) => {
    route.onFailure(`the server answered the upgrade to a WebSocket with ${incoming.statusCode}`);
    const response = new ServerResponse(request);
    response.assignSocket(client);
    response.shouldKeepAlive = false;
    response.writeHead(incoming.statusCode ?? 502, responseHeaders(incoming));
    pipeline(incoming, response, () => client.end(() => client.destroy()));
  });
  outgoing.setHeader("Host", hostHeader(target));
  copyRequestHeaders(request, outgoing);
  outgoing.setHeader("Connection", "Upgrade");
  outgoing.setHeader("Upgrade", "websocket");
  outgoing.end();
}

const closedEarly = ({ code, message }: NodeJS.ErrnoException) =>
  `the server closed the connection early (${code ?? message})`;

function outgoingRequest(
  request: IncomingMessage,
  { path, upstream }: UpstreamRoute,
  limits: EgressLimits,
): ClientRequest {
  return httpRequest({
    method: request.method,
    path,
    setHost: false,
    maxHeaderSize: limits.headerBytes,
    // Node ignores createConnection if an agent is given, and would look the host up itself.
    createConnection: () => upstream,
  });
}

function hostHeader(target: Target): string {
  const full = formatTarget(target);
  return target.port === 80 ? full.slice(0, -":80".length) : full;
}

export function endWith(client: Duplex, own: OwnResponse): void {
  client.end(bytesOf(own), () => client.destroy());
}
