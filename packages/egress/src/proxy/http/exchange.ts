import { type ClientRequest, request as httpRequest, type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Duplex, finished, pipeline, type Readable, type Writable } from "node:stream";
import { SmallPieces } from "@ambit/core/plugin";
import { formatTarget, type Target } from "../../target.js";
import type { EgressLimits } from "../clients.js";
import { join } from "../tunnel/tunnel.js";
import { type RawMessage, valuesOf } from "./destination.js";
import { BOUNDARY_HEADER, bytesOf, headersOf, type OwnResponse, upstreamFailure } from "./own-response.js";

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
    const answer = upstreamFailure(target, 502, reason);
    response.writeHead(answer.status, answer.statusText, headersOf(answer));
    response.end(answer.body);
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

/** Hop-by-hop headers (RFC 9110 section 7.6.1), and the proxy's own. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);

/**
 * Headers for the next hop as [name, value, name, value...], without hop-by-hop ones and those that `Connection` names.
 */
function endToEndHeaders(message: RawMessage): string[] {
  const named = valuesOf(message, "connection").flatMap((value) => value.toLowerCase().split(","));
  const dropped = new Set([...HOP_BY_HOP, ...named.map((name) => name.trim())]);
  // Content-Length frames the body; a Connection header that names it would make two lengths of one message.
  dropped.delete("content-length");
  dropped.delete("host");
  const { rawHeaders } = message;
  return rawHeaders.filter((_value, index) => {
    const name = rawHeaders[index - (index % 2)] ?? "";
    return !dropped.has(name.toLowerCase());
  });
}

/** The response's headers for the client; a server can't claim to be the boundary. */
export function responseHeaders(message: RawMessage): string[] {
  const headers = endToEndHeaders(message);
  return headers.filter((_value, index) => headers[index - (index % 2)]?.toLowerCase() !== BOUNDARY_HEADER);
}

/** Copies a request's headers with their duplicates. The proxy itself sets Host and handles Expect. */
export function copyRequestHeaders(from: RawMessage, to: ClientRequest): void {
  const headers = endToEndHeaders(from);
  const grouped = new Map<string, { name: string; values: string[] }>();
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] ?? "";
    const key = name.toLowerCase();
    if (key === "host" || key === "expect") continue;
    const group = grouped.get(key) ?? { name, values: [] };
    group.values.push(headers[index + 1] ?? "");
    grouped.set(key, group);
  }
  for (const { name, values } of grouped.values()) {
    const [only] = values;
    to.setHeader(name, values.length === 1 && only !== undefined ? only : values);
  }
}

/** Bytes below which a piece counts as small. */
const smallBytes = 1_024;
/** Small pieces of one body that are read in one turn of the event loop. */
const maxBurst = 128;

/**
 * Passes a body on with backpressure, and ends `to` with it. The sender chooses its chunks: what comes in small ones is put
 * together, and read in turns of the event loop, since to handle one takes as long as to handle 64 KiB.
 */
export function passBody(from: Readable, to: Writable): void {
  const small = new SmallPieces();
  let burst = 0;
  let isScheduled = false;
  let isFull = false;
  const write = (pieces: readonly Uint8Array[]) => {
    for (const piece of pieces) if (!to.write(piece)) isFull = true;
    if (isFull) from.pause();
  };
  const goOn = () => {
    if (!isFull && burst < maxBurst) from.resume();
  };
  const nextTurn = () => {
    isScheduled = false;
    burst = 0;
    if (to.destroyed || to.writableEnded) return;
    write(small.end());
    goOn();
  };
  const schedule = () => {
    isScheduled = true;
    setImmediate(nextTurn);
  };
  const take = (piece: Buffer) => {
    write(small.push(piece));
    if (piece.length >= smallBytes) return;
    burst += 1;
    if (burst >= maxBurst) from.pause();
    if (!isScheduled) schedule();
  };
  from.on("data", take);
  from.once("end", () => {
    write(small.end());
    to.end();
  });
  to.on("drain", () => {
    isFull = false;
    goOn();
  });
  // As a pipe does: what still comes isn't read.
  to.once("close", () => {
    from.off("data", take);
    from.pause();
  });
}
