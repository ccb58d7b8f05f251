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
        const request = new Request(input, init);
        const connection = () => this.#connect(caller);
        const incoming = await exchanged(request, connection);
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

function exchanged(request: Request, createConnection: () => Duplex): Promise<IncomingMessage> {
  const { pathname, search } = new URL(request.url);
  const { method, signal, body } = request;
  return new Promise((resolve, reject) => {
    const headers = Object.fromEntries(request.headers);
    const outgoing = requestOver({
      createConnection,
      method,
      path: `${pathname}${search}`,
      headers: { ...headers, host: "localhost", connection: "close" },
      signal,
    });
    outgoing.once("response", resolve).once("error", reject);
    if (body === null) outgoing.end();
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
