import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Admitted } from "../admitted.js";
import type { EgressLimits } from "../limits.js";

/** What a client's requests are inside of: a tunnel to a listed host, or one to the session itself. */
export type Tunnel = Admitted | "own";

interface Client {
  tunnel: Tunnel | undefined;
  /** Requests not yet answered. */
  unanswered: number;
  /** The answer before: pipelined requests arrive in order, one server connection per client. */
  turn: Promise<void>;
  /** Ends a client that doesn't say what it wants. Node's own time limits hold only for a server that listens. */
  deadline: NodeJS.Timeout | undefined;
}

/** Client connections of the HTTP side, and how long each may keep its descriptor without asking for anything. */
export class HttpClients {
  readonly #limits: EgressLimits;
  readonly #clients = new WeakMap<Duplex, Client>();

  constructor(limits: EgressLimits) {
    this.#limits = limits;
  }

  /** A connection begins, or changes into a tunnel. From here on it has `handshakeMs` for a complete header. */
  open(connection: Duplex, tunnel: Tunnel | undefined): void {
    this.leave(connection);
    const client: Client = { tunnel, unanswered: 0, turn: Promise.resolve(), deadline: undefined };
    this.#clients.set(connection, client);
    this.#startDeadline(connection, client, this.#limits.handshakeMs);
    connection.once("close", () => clearTimeout(client.deadline));
  }

  /** A connection belongs to somebody else: it waits for no header any more. */
  leave(connection: Duplex): void {
    clearTimeout(this.#clients.get(connection)?.deadline);
  }

  tunnelOf(connection: Duplex): Tunnel | undefined {
    return this.#clients.get(connection)?.tunnel;
  }

  /** A CONNECT or an upgrade among unanswered requests would mix their answers into the tunnel. */
  hasUnanswered(connection: Duplex): boolean {
    return (this.#clients.get(connection)?.unanswered ?? 0) > 0;
  }

  /**
   * A complete header is there.
   *
   * @returns the end of the answer before; undefined when the client has too many unanswered requests, and is cut.
   */
  begin(request: IncomingMessage, response: ServerResponse): Promise<void> | undefined {
    const connection = request.socket;
    const client = this.#clients.get(connection);
    if (client === undefined || client.unanswered >= this.#limits.pipelined) return void connection.destroy();
    clearTimeout(client.deadline);
    client.unanswered += 1;
    const before = client.turn;
    client.turn = new Promise((resolve) => response.once("close", resolve));
    response.once("close", () => {
      client.unanswered -= 1;
      if (client.unanswered === 0) this.#startDeadline(connection, client, this.#limits.handshakeMs);
    });
    return before;
  }

  /** The body of this request must be complete within `bodyMs`. */
  expectBody(request: IncomingMessage): void {
    if (request.complete) return;
    const connection = request.socket;
    const timer = setTimeout(() => connection.destroy(), this.#limits.bodyMs);
    request.once("end", () => clearTimeout(timer));
    request.once("close", () => clearTimeout(timer));
  }

  #startDeadline(connection: Duplex, client: Client, ms: number): void {
    clearTimeout(client.deadline);
    if (!connection.destroyed) client.deadline = setTimeout(() => connection.destroy(), ms);
  }
}
