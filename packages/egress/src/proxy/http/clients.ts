import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { AdmittedDestination } from "../../decide.js";
import type { EgressLimits } from "../limits.js";

/** The tunnel that a client's requests are in: to a listed host, or to the session itself. */
export type Tunnel = AdmittedDestination | "own";

interface Client {
  tunnel: Tunnel | undefined;
  /** Requests without a response yet. */
  unanswered: number;
  /** The previous response: pipelined requests arrive in order, with one server connection per client. */
  turn: Promise<void>;
  /** Ends a client that sends no request in time. Node's own time limits apply only to a listening server. */
  deadline: NodeJS.Timeout | undefined;
}

/** Client connections of the HTTP side, with a time limit for connections without a request. */
export class HttpClients {
  readonly #limits: EgressLimits;
  readonly #clients = new WeakMap<Duplex, Client>();

  constructor(limits: EgressLimits) {
    this.#limits = limits;
  }

  /** A connection begins, or becomes a tunnel. It then has `handshakeMs` for a complete header. */
  open(connection: Duplex, tunnel: Tunnel | undefined): void {
    this.leave(connection);
    const client: Client = { tunnel, unanswered: 0, turn: Promise.resolve(), deadline: undefined };
    this.#clients.set(connection, client);
    this.#startDeadline(connection, client, this.#limits.handshakeMs);
    connection.once("close", () => clearTimeout(client.deadline));
  }

  /** The connection is handed over: it no longer waits for a header. */
  leave(connection: Duplex): void {
    clearTimeout(this.#clients.get(connection)?.deadline);
  }

  tunnelOf(connection: Duplex): Tunnel | undefined {
    return this.#clients.get(connection)?.tunnel;
  }

  /** A CONNECT or an upgrade among pending requests would mix their responses into the tunnel. */
  hasUnanswered(connection: Duplex): boolean {
    return (this.#clients.get(connection)?.unanswered ?? 0) > 0;
  }

  /**
   * A complete header has arrived.
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
