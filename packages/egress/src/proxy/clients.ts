/** What the clients of one session's proxy may have: connections, their share of the server's, and time for requests. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { AdmittedDestination } from "../decide.js";
import { openFilesLimit } from "../open-files.js";

/** Bounds of one session's proxy. Times in milliseconds. */
export interface EgressLimits {
  /** Concurrent client connections; one more gets 503. */
  readonly connections: number;
  /**
   * For a complete greeting, for a tunnel's complete first flight, and for a complete request header: from the
   * connection's start, and again from the end of each response.
   */
  readonly handshakeMs: number;
  /** For the body of a request to an exposure. */
  readonly bodyMs: number;
  /** Pipelined requests of one connection; one more ends the connection. */
  readonly pipelined: number;
  /** Lookups at once; further ones wait, within `lookupMs`. */
  readonly lookups: number;
  readonly lookupMs: number;
  /** For each address that is tried. */
  readonly connectMs: number;
  /** Without a byte in either direction. */
  readonly idleMs: number;
  /** The same, once one side has half-closed. */
  readonly halfClosedIdleMs: number;
  /** A request's or a response's header, in bytes. */
  readonly headerBytes: number;
}

export const defaultProxyLimits: EgressLimits = {
  connections: 256,
  handshakeMs: 10_000,
  bodyMs: 60_000,
  pipelined: 64,
  lookups: 2,
  lookupMs: 10_000,
  connectMs: 10_000,
  idleMs: 15 * 60_000,
  halfClosedIdleMs: 60_000,
  headerBytes: 32 * 1024,
};

/** One session's share of what the server has in all. */
export interface Share {
  /** Takes some, by default one; false if the budget is used up. Every true needs one `give` of as much. */
  take(amount?: number): boolean;
  release(amount?: number): void;
  /** Called when the session is closed. */
  leave(): void;
}

/**
 * What all sessions together may have: client connections, or memory of decoders. A session below an equal share always
 * gets some: another session can't keep it from the network. So at most twice the limit can be taken.
 */
export class SharedBudget {
  readonly #limit: number;
  #taken = 0;
  #sessions = 0;

  constructor(limit: number) {
    this.#limit = Math.max(1, Math.floor(limit));
  }

  get taken(): number {
    return this.#taken;
  }

  join(): Share {
    this.#sessions += 1;
    let sessionTaken = 0;
    let isReleased = false;
    return {
      take: (amount = 1) => {
        const equalPart = Math.max(1, Math.floor(this.#limit / this.#sessions));
        if (this.#taken + amount > this.#limit && sessionTaken + amount > equalPart) return false;
        sessionTaken += amount;
        this.#taken += amount;
        return true;
      },
      release: (amount = 1) => {
        sessionTaken -= amount;
        this.#taken -= amount;
      },
      leave: () => {
        if (isReleased) return;
        isReleased = true;
        this.#sessions -= 1;
      },
    };
  }
}

/** Assumed where nothing says the limit of open files. */
const assumedOpenFiles = 1_024;

/** A connection has two descriptors at most, so an eighth of the limit leaves half of them to the rest of the server. */
export function serverConnections(openFiles = assumedOpenFiles): number {
  return Math.floor(openFiles / 8);
}

let connections: SharedBudget | undefined;

/** This process's budget of connections. */
export function serverBudget(): SharedBudget {
  connections ??= new SharedBudget(serverConnections(openFilesLimit()));
  return connections;
}

/** Why a connection isn't served. */
interface Refused {
  readonly reason: string;
  /** Since the last admitted connection, so that a client that keeps trying causes one record, not thousands. */
  readonly isFirst: boolean;
}

/** Limits one session's clients to the session's own limit and its share of the server's. */
export class ClientAdmission {
  readonly #limit: number;
  readonly #share: Share;
  #open = 0;
  #isRefusing = false;

  constructor(limit: number, share: Share) {
    this.#limit = limit;
    this.#share = share;
  }

  /** @returns undefined for a client that is admitted; it counts until it is closed. */
  admit(client: Socket): Refused | undefined {
    const full = this.#open >= this.#limit;
    if (full || !this.#share.take()) {
      const isFirst = !this.#isRefusing;
      this.#isRefusing = true;
      const reason = full
        ? `this session has ${this.#limit} connections open already`
        : "the server has reached its limit of open connections";
      return { reason, isFirst };
    }
    this.#isRefusing = false;
    this.#open += 1;
    client.once("close", () => {
      this.#open -= 1;
      this.#share.release();
    });
    return undefined;
  }

  close(): void {
    this.#share.leave();
  }
}

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
