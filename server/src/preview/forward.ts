import { type IncomingMessage, type ServerResponse, STATUS_CODES, request as send } from "node:http";
import { type Duplex, pipeline } from "node:stream";
import { headersInside, headersOutside, type PreviewOrigin } from "./headers.js";

/** Milliseconds that the connection of a server that takes nothing may hold the end of a refused upgrade. */
const refusalMs = 1_000;

export interface Forwarded {
  readonly preview: PreviewOrigin;
  /** Without the ticket. */
  readonly path: string;
  /** To the program inside. */
  readonly connection: Duplex;
}

/** Passes one request on, and its response back. Ends with either side. */
export function forwardRequest(
  caller: IncomingMessage,
  response: ServerResponse,
  { preview, path, connection }: Forwarded,
  failed: () => void,
): void {
  const sent = open(caller, preview, path, connection, framingOf(caller));
  const fail = () => {
    connection.destroy();
    if (response.headersSent) response.destroy();
    else failed();
  };
  sent.once("response", (answer) => {
    if (!isFinal(answer)) return fail();
    response.writeHead(answer.statusCode, headersOutside(answer.headers, preview));
    pipeline(answer, response, () => connection.destroy());
  });
  sent.once("error", fail);
  // An answer that switches protocols without being asked. No error follows: the connection is no longer the request's.
  sent.once("upgrade", fail);
  response.once("close", () => sent.destroy());
  pipeline(caller, sent, () => {
    // Either side's errors are handled above.
  });
}

/** Passes a WebSocket's handshake on, and joins the two if the program inside agrees. */
export function forwardUpgrade(
  caller: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  { preview, path, connection }: Forwarded,
  failed: () => void,
): void {
  const sent = open(caller, preview, path, connection, { connection: "Upgrade", upgrade: "websocket" });
  const leave = () => sent.destroy();
  sent.once("upgrade", (answer, inside, first) => {
    // Either side ends the other from now on.
    socket.off("close", leave);
    const headers = {
      ...headersOutside(answer.headers, preview),
      connection: "Upgrade",
      upgrade: "websocket",
    };
    socket.write(headOf(101, headers));
    if (first.length > 0) socket.write(first);
    if (head.length > 0) inside.write(head);
    const end = () => {
      socket.destroy();
      inside.destroy();
    };
    pipeline(socket, inside, socket, end);
  });
  const fail = () => {
    connection.destroy();
    failed();
  };
  sent.once("response", (answer) => {
    if (!isFinal(answer)) return fail();
    const { statusCode, headers } = answer;
    const safe = headersOutside(headers, preview);
    delete safe["content-length"];
    socket.write(headOf(statusCode, { ...safe, connection: "close" }));
    pipeline(answer, socket, () => connection.destroy());
    setTimeout(() => socket.destroy(), refusalMs).unref();
  });
  sent.once("error", fail);
  socket.once("close", leave);
  sent.end();
}

/**
 * Whether it is an answer to pass on. Node's parser also lets through numbers that are none, which its server refuses to write, and a
 * 101 without `Upgrade`: a proxy between here and the caller would take what follows for another protocol.
 */
function isFinal(answer: IncomingMessage): answer is IncomingMessage & { statusCode: number } {
  return answer.statusCode !== undefined && answer.statusCode >= 200;
}

/** How the caller's body ends. Without it, Node sends one of DELETE as it is, and the program would read the next request in it. */
function framingOf({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  if (headers["transfer-encoding"] !== undefined) return { "transfer-encoding": "chunked" };
  const length = headers["content-length"];
  return length === undefined ? {} : { "content-length": length };
}

function open(
  { method, headers }: IncomingMessage,
  preview: PreviewOrigin,
  path: string,
  connection: Duplex,
  more: Readonly<Record<string, string>>,
) {
  return send({
    method,
    path,
    headers: { ...headersInside(headers, preview), connection: "close", ...more },
    setHost: false,
    createConnection: () => connection,
  });
}

function headOf(status: number, headers: ReturnType<typeof headersOutside>): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}`),
  );
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`, ...lines, "", ""].join("\r\n");
}
