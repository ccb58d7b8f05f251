import { rm } from "node:fs/promises";
import { createServer as createHttpServer, type Server as HttpServer, type RequestListener } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { RunnerClient } from "../control/toolbox/runner-client.js";
import type { World, WorldArrival, WorldHostView, WorldRequest } from "../interface.js";
import { type ResolvedWorldHost, type WorldHost, worldHost } from "../options.js";
import { worldAddress } from "../runner/addresses.js";
import { join } from "../runner/container/join.js";
import { type Arrival, arrival } from "../runner/messages.js";
import { recorded } from "./record-request.js";

interface Host {
  readonly host: ResolvedWorldHost;
  readonly view: WorldHostView;
  readonly http: HttpServer;
}

/** The behaviour of the world's hosts. The runner forwards each connection to this server, after a line with its target. */
export class WorldServer implements World {
  readonly #hosts = new Map<string, Host>();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #runner: RunnerClient | undefined;
  #requests: WorldRequest[] = [];
  #arrivals: WorldArrival[] = [];
  #queries: { sandboxId: string; name: string }[] = [];

  constructor(private readonly socketPath: string) {
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) =>
      this.#accept(socket),
    );
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject).listen(this.socketPath, resolve);
    });
  }

  /** From now on hosts can be added. */
  connect(runner: RunnerClient): void {
    this.#runner = runner;
  }

  hosts(): readonly WorldHostView[] {
    return [...this.#hosts.values()].map(({ view }) => view);
  }

  async add(wanted: WorldHost): Promise<WorldHostView> {
    const host = worldHost.parse(wanted);
    if (this.#hosts.has(host.name)) throw new Error(`there is a host ${host.name} already`);
    const address = host.address ?? this.#freeAddress();
    if (!/^10\.99\.0\.\d+$/.test(address) || this.hosts().some((other) => other.address === address))
      throw new Error(`${address} is taken, or not of 10.99.0.0/24`);
    const { name, ports } = host;
    const view = { name, address, ports };
    this.#hosts.set(name, { host, view, http: this.#httpServer(host) });
    await this.#runner?.call({ method: "host", name, address, ports });
    return view;
  }

  requests(): readonly WorldRequest[] {
    return [...this.#requests];
  }

  arrivals(): readonly WorldArrival[] {
    return [...this.#arrivals];
  }

  queries(): readonly { readonly sandboxId: string; readonly name: string }[] {
    return [...this.#queries];
  }

  clear(): void {
    this.#requests = [];
    this.#arrivals = [];
    this.#queries = [];
  }

  recordQuery(sandboxId: string, name: string): void {
    this.#queries.push({ sandboxId, name });
  }

  heardDatagram(sandboxId: string, host: string, port: number): void {
    this.#arrivals.push({ host, port, protocol: "udp", sandboxId });
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await rm(this.socketPath, { force: true });
  }

  #freeAddress(): string {
    const taken = new Set(this.hosts().map(({ address }) => address));
    for (let number = 2; number < 255; number += 1) {
      const address = worldAddress(number);
      if (!taken.has(address)) return address;
    }
    throw new Error("every address of 10.99.0.0/24 is taken");
  }

  #httpServer({ name, respond }: ResolvedWorldHost): HttpServer {
    const answer: RequestListener =
      respond ??
      ((_, response) => {
        response.writeHead(200, { "content-type": "text/plain" });
        response.end(`hello from ${name}\n`);
      });
    return createHttpServer((request, response) => {
      const from = places.get(request.socket);
      if (from) recorded(request, from, (entry) => this.#requests.push(entry));
      answer(request, response);
    });
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    let head = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf("\n");
      if (end < 0) return;
      socket.off("data", onData);
      socket.pause();
      const place = arrival.parse(JSON.parse(head.subarray(0, end).toString("utf8")));
      socket.unshift(head.subarray(end + 1));
      this.#serve(socket, place);
    };
    socket.on("data", onData);
    socket.resume();
  }

  #serve(socket: Socket, place: Arrival): void {
    const found = this.#hosts.get(place.host);
    if (!found) {
      socket.destroy();
      return;
    }
    this.#arrivals.push({ host: place.host, port: place.port, protocol: "tcp", sandboxId: place.id });
    const { forwardTo } = found.host;
    if (forwardTo !== undefined) {
      join(socket, connect({ host: "127.0.0.1", port: forwardTo, allowHalfOpen: true }));
      return;
    }
    places.set(socket, place);
    found.http.emit("connection", socket);
    socket.resume();
  }
}

/** The targets of HTTP connections. */
const places = new WeakMap<Socket, Arrival>();
