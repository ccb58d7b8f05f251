import {
  createServer,
  type IncomingMessage,
  request as requestOver,
  type Server,
  type ServerResponse,
} from "node:http";
import { type Duplex, duplexPair, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { outsideOffers } from "@ambit/core";
import type { Caller } from "../../tenants/caller.js";

/**
 * The server's API for doors: HTTP over connections within this process, each of which speaks for one caller. A door's
 * request passes every check of a route but that of the token, which its caller's own request has passed.
 */
export class InnerConnections {
  readonly #callers = new WeakMap<Duplex, Caller>();
  readonly #server: Server;

  constructor(respond: (incoming: IncomingMessage, outgoing: ServerResponse) => void) {
    this.#server = createServer(respond);
  }

  /** The caller for whom a connection speaks; undefined for a connection from outside. */
  callerOn(socket: Duplex): Caller | undefined {
    return this.#callers.get(socket);
  }

  /** The API as this caller. It rejects, and errors a body, when the connection ends early. */
  fetchAs(caller: Caller): typeof fetch {
    return (input, init) =>
      outsideOffers(async () => {
        const request = sendable(input, init);
        const incoming = await exchanged(request, () => this.#connect(caller));
        // The signal of a `Request` works only while the `Request` is kept.
        incoming.once("close", () => void [input, request]);
        const { statusCode: status = 500 } = incoming;
        const headers = Object.entries(incoming.headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        );
        return new Response(bodiless.has(status) ? null : bodyOf(incoming), { status, headers });
      });
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #connect(caller: Caller): Duplex {
    const [client, server] = duplexPair();
    this.#callers.set(server, caller);
    this.#server.emit("connection", server);
    return client;
  }
}

/** Statuses whose responses have no body. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

/** A call of `fetch`, with a text as it is: as the stream of a `Request`, it takes longer than the exchange itself. */
interface Sendable {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | ReadableStream<Uint8Array> | null;
  readonly signal: AbortSignal | null;
}

function sendable(input: string | URL | Request, init: RequestInit = {}): Sendable {
  const { method = "GET", headers, body = null, signal = null } = init;
  if (input instanceof Request || (body !== null && typeof body !== "string"))
    return new Request(input, init);
  return { url: String(input), method, headers: new Headers(headers), body, signal };
}

function exchanged(
  { url, method, headers, body, signal }: Sendable,
  createConnection: () => Duplex,
): Promise<IncomingMessage> {
  const { pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const outgoing = requestOver({
      createConnection,
      method,
      path: `${pathname}${search}`,
      headers: { ...Object.fromEntries(headers), host: "localhost", connection: "close" },
      ...(signal === null ? {} : { signal }),
    });
    outgoing.once("response", resolve).once("error", reject);
    if (body === null || typeof body === "string") outgoing.end(body ?? undefined);
    else void pipeline(Readable.from(body), outgoing).catch(reject);
  });
}

function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  const reader = incoming[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await reader.next();
        if (next.done === true) controller.close();
        else controller.enqueue(next.value);
      },
      cancel: () => void incoming.destroy(),
    },
    { highWaterMark: 0 },
  );
}
