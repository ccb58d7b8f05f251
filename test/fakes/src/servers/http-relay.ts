import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type RequestOptions,
  request,
  type ServerResponse,
} from "node:http";
import { connect, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly body: Buffer;
}

export interface RelayChanges {
  /** What goes on instead of a request, and when. Default: the request, at once. */
  request?(asked: Asked): Asked | Promise<Asked>;
  /** Changes the JSON of the response, if it succeeds; undefined: the response is carried as it comes. */
  response?(asked: Asked): ((said: Record<string, unknown>) => object) | undefined;
}

/** A service at a Unix socket, or at a port of this host's loopback. */
export type RelayTarget = { readonly socketPath: string } | { readonly port: number };

/** Clients may repeat whole orders in an address. */
const maxHeaderSize = 256 * 1024;

/**
 * Stands between a client and an HTTP service, and changes what they say: a mechanism is taken out without a switch in the client
 * that could do that. Connections that are upgraded are carried as they are.
 */
export class HttpRelay {
  readonly #target: RelayTarget;
  readonly #changes: RelayChanges;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer({ maxHeaderSize }, (incoming, outgoing) => {
    this.#answer(incoming, outgoing).catch((error: unknown) =>
      outgoing.destroy(error instanceof Error ? error : undefined),
    );
  });

  constructor(target: RelayTarget, changes: RelayChanges) {
    this.#target = target;
    this.#changes = changes;
    this.#server.on("connection", (client: Socket) => this.#keep(client));
    this.#server.on("upgrade", (incoming, client: Socket, head) => this.#carry(incoming, client, head));
  }

  /**
   * @param path of its Unix socket. Default: a port of the loopback.
   * @returns the port; 0 for a path.
   */
  async listen(path?: string): Promise<number> {
    await once(
      path === undefined ? this.#server.listen(0, "127.0.0.1") : this.#server.listen(path),
      "listening",
    );
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = "GET", url = "/", headers } = incoming;
    const asked: Asked = { method, url, body: await buffer(incoming) };
    const going = (await this.#changes.request?.(asked)) ?? asked;
    const { "transfer-encoding": _chunked, ...kept } = headers;
    const onward = request({
      ...this.#addressee(),
      method: going.method,
      path: going.url,
      agent: false,
      headers: { ...kept, "content-length": going.body.length },
    });
    outgoing.on("close", () => onward.destroy());
    onward.end(going.body);
    const [response]: IncomingMessage[] = await once(onward, "response");
    if (response === undefined) throw new Error("the service gave no response");
    const { statusCode = 500 } = response;
    const change = statusCode < 300 ? this.#changes.response?.(asked) : undefined;
    if (change === undefined) {
      outgoing.writeHead(statusCode, response.headers);
      response.pipe(outgoing);
      return;
    }
    const answer = change(JSON.parse((await buffer(response)).toString()));
    const { "content-length": _length, "transfer-encoding": _encoding, ...rest } = response.headers;
    outgoing.writeHead(statusCode, rest).end(JSON.stringify(answer));
  }

  /** A stream that the service and the client keep open, such as a command's. */
  #carry(incoming: IncomingMessage, client: Socket, head: Buffer): void {
    const target = this.#target;
    const service = this.#keep(
      "port" in target ? connect(target.port, "127.0.0.1") : connect(target.socketPath),
    );
    const { method, url, rawHeaders } = incoming;
    const lines = rawHeaders.flatMap((name, index) =>
      index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : [],
    );
    service.write(`${method} ${url} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
    // The request's body: newer versions of Node parse it, older ones leave it in the head.
    service.write(head);
    incoming.on("data", (body: Buffer) => service.write(body));
    client.pipe(service).pipe(client);
    client.once("close", () => service.destroy());
    service.once("close", () => client.destroy());
  }

  #addressee(): RequestOptions {
    return "port" in this.#target ? { host: "127.0.0.1", port: this.#target.port } : this.#target;
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    return socket.once("close", () => this.#sockets.delete(socket));
  }
}
