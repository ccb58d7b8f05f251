import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import type { ContainerCreateOptions } from "dockerode";

type Order = ContainerCreateOptions;

/** Bytes: the client repeats a whole order in the address. */
const maxHeaderSize = 256 * 1024;

export interface EngineChange {
  /** A container's order, as the engine gets it. */
  change(order: Order): Order;
  /** Whether it reports the original order as applied, as if the backend had ordered that. */
  readonly isConcealed: boolean;
}

/**
 * Stands between a backend and its engine, and changes the orders of containers: a mechanism is taken out without a switch in the
 * backend that could do that.
 */
export class ChangingEngine {
  readonly #socket: string;
  readonly #change: EngineChange;
  readonly #orders = new Map<string, Order>();
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer({ maxHeaderSize }, (incoming, outgoing) => {
    this.#answer(incoming, outgoing).catch((error: unknown) =>
      outgoing.destroy(error instanceof Error ? error : undefined),
    );
  });

  /** @param socket the engine's. */
  constructor(socket: string, change: EngineChange) {
    this.#socket = socket;
    this.#change = change;
    this.#server.on("connection", (client: Socket) => this.#keep(client));
    this.#server.on("upgrade", (incoming, client: Socket, head) => this.#carry(incoming, client, head));
  }

  /** @param path of its own socket. */
  async listen(path: string): Promise<void> {
    await once(this.#server.listen(path), "listening");
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method, url = "/", headers } = incoming;
    const isOrder = method === "POST" && /\/containers\/create\b/.test(url);
    const given = await buffer(incoming);
    const order: Order | undefined = isOrder ? JSON.parse(given.toString()) : undefined;
    const body = order === undefined ? given : Buffer.from(JSON.stringify(this.#change.change(order)));
    const onward = request({
      ...{ socketPath: this.#socket, method, path: url, agent: false },
      headers: { ...headers, "content-length": body.length },
    });
    outgoing.on("close", () => onward.destroy());
    onward.end(body);
    const [response]: IncomingMessage[] = await once(onward, "response");
    if (response === undefined) throw new Error("the engine gave no response");
    const { statusCode = 500 } = response;
    const [, inspected] = /\/containers\/([0-9a-f]+)\/json$/.exec(url) ?? [];
    if (statusCode >= 300 || (order === undefined && inspected === undefined)) {
      outgoing.writeHead(statusCode, response.headers);
      response.pipe(outgoing);
      return;
    }
    const said = JSON.parse((await buffer(response)).toString());
    if (order !== undefined) this.#orders.set(said.Id, order);
    const answer = inspected === undefined ? said : this.#reported(said, this.#orders.get(inspected));
    const { "content-length": _length, "transfer-encoding": _encoding, ...rest } = response.headers;
    outgoing.writeHead(statusCode, rest).end(JSON.stringify(answer));
  }

  /** What `inspect` says, with the order's own words. */
  #reported(said: Record<string, unknown>, order: Order | undefined): object {
    if (order === undefined || !this.#change.isConcealed) return said;
    const asked = new Map<string, unknown>(Object.entries(order.HostConfig ?? {}));
    const changes = Object.entries(this.#change.change(order).HostConfig ?? {})
      .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(asked.get(name)))
      .map(([name]) => [name, asked.get(name) ?? concealed[name]]);
    const host = Object.fromEntries(changes);
    return {
      ...said,
      HostConfig: { ...Object(said.HostConfig), ...order.HostConfig, ...host },
      Config: { ...Object(said.Config), User: order.User },
      ...("Mounts" in host && Array.isArray(said.Mounts)
        ? { Mounts: said.Mounts.map((mount) => ({ ...mount, RW: false })) }
        : {}),
      ...("NetworkMode" in host ? { NetworkSettings: { Networks: { none: {} } } } : {}),
    };
  }

  /** A stream that the engine and the backend keep open, such as a command's. */
  #carry(incoming: IncomingMessage, client: Socket, head: Buffer): void {
    const engine = this.#keep(connect(this.#socket));
    const { method, url, headers } = incoming;
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    engine.write(`${method} ${url} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
    // The request's body: newer versions of Node parse it, older ones leave it in the head.
    engine.write(head);
    incoming.on("data", (body: Buffer) => engine.write(body));
    client.pipe(engine).pipe(client);
    client.once("close", () => engine.destroy());
    engine.once("close", () => client.destroy());
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    return socket.once("close", () => this.#sockets.delete(socket));
  }
}

/** What an engine says of a setting that isn't ordered. */
const concealed: Readonly<Record<string, unknown>> = {
  MaskedPaths: ["/proc/kcore", "/proc/keys"],
  ReadonlyPaths: ["/proc/sys", "/proc/sysrq-trigger"],
  PidMode: "",
  UsernsMode: "",
};
