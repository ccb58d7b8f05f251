import { createSocket } from "node:dgram";
import { connect, createServer } from "node:net";
import type { Duplex } from "node:stream";
import { worldAddress6 } from "../addresses.js";
import type { Directory } from "../container/directory.js";
import { join } from "../container/join.js";
import type { Arrival, Setup } from "../messages.js";

/**
 * The world's hosts on this network. The control plane decides what they do: each TCP connection goes to its socket, after a
 * line with the target. UDP is reported and gets a reply.
 */
export class WorldHosts {
  readonly #ports = new Map<string, readonly number[]>();

  constructor(
    private readonly directory: Directory,
    private readonly worldSocket: string,
    private readonly leaks: Setup["leaks"],
    private readonly datagram: (id: string, host: string, port: number) => void,
  ) {}

  async add(name: string, address: string, ports: readonly number[]): Promise<void> {
    this.directory.addHost(name, address);
    this.#ports.set(name, ports);
    await Promise.all(
      ports.flatMap((port) => [
        this.#tcp(name, address, port),
        this.#udp(name, address, port),
        ...(this.leaks.includes("ipv6") ? [this.#tcp(name, worldAddress6(address), port)] : []),
      ]),
    );
    if (this.leaks.includes("datagrams")) await this.#udp(name, address, 53);
  }

  /** A connection to a host on behalf of a sandbox. Undefined if nothing listens. */
  open(host: string, port: number, id: string | undefined): Duplex | undefined {
    if (!this.#ports.get(host)?.includes(port)) return undefined;
    const arrival: Arrival = { host, port, ...(id === undefined ? {} : { id }) };
    const outside = connect({ path: this.worldSocket, allowHalfOpen: true });
    outside.write(`${JSON.stringify(arrival)}\n`);
    return outside;
  }

  #tcp(host: string, address: string, port: number): Promise<void> {
    const server = createServer({ allowHalfOpen: true }, (inside) => {
      const outside = this.open(host, port, this.directory.sandbox(inside.remoteAddress)?.id);
      if (outside) join(inside, outside);
      else inside.destroy();
    });
    return new Promise((resolve, reject) => server.once("error", reject).listen(port, address, resolve));
  }

  #udp(host: string, address: string, port: number): Promise<void> {
    const socket = createSocket({ type: "udp4", reuseAddr: true }, (_, peer) => {
      const id = this.directory.sandbox(peer.address)?.id;
      if (id !== undefined) this.datagram(id, host, port);
      socket.send("pong", peer.port, peer.address);
    });
    return new Promise((resolve, reject) => socket.once("error", reject).bind(port, address, resolve));
  }
}
