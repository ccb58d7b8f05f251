import type { Server, ServerResponse } from "node:http";
import { isIPv6, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { AtCapacity } from "@ambit/core";
import { isLoopback } from "../caller/loopback.js";

/** Open connections at one time, and who may have how many of them. */
export interface ConnectionShares {
  /** Whose caller isn't known yet. One more, and the oldest of them ends. */
  readonly unknown: number;
  /** How many of the unknown ones may come from one address of another machine. */
  readonly unknownPerPeer: number;
  /** Whose caller has sent a token, or is let in without one. Kept for them, whatever the others do. */
  readonly known: number;
  /** How many of the known ones all tenants may have together. The operator has the others. */
  readonly tenants: number;
  /** One tenant's. */
  readonly perTenant: number;
}

/** Assumed where nothing says how many files may be open. */
const assumedOpenFiles = 1_024;
/** Half of the files that may be open: sandboxes, stores and connections of runs need the rest. */
const partOfOpenFiles = 2;
/** The health listener's part. The more connections it keeps, the longer a slow probe has while others flood it. */
const healthPartOfOpenFiles = 16;
const maxHealthConnections = 256;

/** The shares of `maxConnections`, or of fewer where the process may open few files. Pure. */
export function sharesOf(maxConnections: number, openFiles = assumedOpenFiles): ConnectionShares {
  const total = Math.max(16, Math.min(maxConnections, Math.floor(openFiles / partOfOpenFiles)));
  // Large: a caller has as long to show its token as it takes others to open so many.
  const unknown = Math.floor(total / 2);
  const known = total - unknown;
  const tenants = Math.floor((known * 3) / 4);
  return {
    unknown,
    known,
    tenants,
    unknownPerPeer: Math.ceil(unknown / 4),
    perTenant: Math.ceil(tenants / 4),
  };
}

/** Open connections of the health listener, which are none of the server's. Pure. */
export function healthConnections(openFiles = assumedOpenFiles): number {
  return Math.max(8, Math.min(maxHealthConnections, Math.floor(openFiles / healthPartOfOpenFiles)));
}

/** Requests of one connection without a complete response. HTTP/1.1 allows more, and no client in use sends two. */
const maxPipelined = 16;

/** The operator, or a tenant by its project. */
export type ConnectionOwner = { readonly project: string } | "operator";

interface Connection {
  readonly socket: Socket;
  readonly peer: string;
  /** Undefined until a request of it was let in. */
  owner: ConnectionOwner | undefined;
  /** Requests without a complete response. */
  requests: number;
}

/**
 * The open connections of the server. Those whose caller isn't known yet can take only their own share, where the oldest
 * makes room for the newest: a caller that opens many of them displaces only them. What is left is kept for callers that are
 * let in, shared among them.
 */
export class Connections {
  readonly #bySocket = new WeakMap<Duplex, Connection>();
  /** The set keeps the order in which they were opened. */
  readonly #unknown = new Set<Connection>();
  readonly #unknownByPeer = new Map<string, Set<Connection>>();
  /** The key is the project; undefined for the operator. Each set keeps the order in which they were let in. */
  readonly #known = new Map<string | undefined, Set<Connection>>();

  constructor(readonly shares: ConnectionShares) {}

  /** Counts the server's connections. */
  count(server: Server): void {
    server.on("connection", (socket) => this.#opened(socket));
    server.on("request", (request, response) => this.#asked(request.socket, response));
  }

  /** Counts them, and ends slow ones. @param writeTimeoutMs within which a caller must take some of its response. */
  watch(server: Server, writeTimeoutMs: number): void {
    this.count(server);
    server.timeout = writeTimeoutMs;
    server.on("timeout", (socket) => {
      const isWaiting = socket.writableLength === 0 && this.isAnswering(socket);
      // A run that says nothing keeps its reader. One that takes nothing for so long is gone, or wants to hold memory.
      if (isWaiting) socket.setTimeout(writeTimeoutMs);
      else socket.destroy();
    });
  }

  /** Whether a request of this connection has no complete response yet. */
  isAnswering(socket: Duplex): boolean {
    return (this.#bySocket.get(socket)?.requests ?? 0) > 0;
  }

  /** From now on it carries another protocol, and is in use until it ends. */
  upgraded(socket: Duplex): void {
    const connection = this.#bySocket.get(socket);
    if (connection !== undefined) connection.requests += 1;
  }

  /**
   * A request of this connection was let in: it counts as its caller's from now on.
   * @throws AtCapacity where the caller has its share already, and each of them is in use
   */
  admit(socket: Socket, owner: ConnectionOwner): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || isSame(connection.owner, owner)) return;
    const project = projectOf(owner);
    if (!this.#hasRoomFor(project) && !this.#endIdle(project)) throw new AtCapacity(tooMany);
    this.#forget(connection);
    connection.owner = owner;
    const callersConnections = this.#known.get(project) ?? new Set();
    this.#known.set(project, callersConnections.add(connection));
  }

  #opened(socket: Socket): void {
    endParsingWith(socket);
    const peer = peerOf(socket.remoteAddress);
    const connection: Connection = { socket, peer, owner: undefined, requests: 0 };
    this.#bySocket.set(socket, connection);
    this.#unknown.add(connection);
    const same = this.#unknownByPeer.get(peer) ?? new Set();
    this.#unknownByPeer.set(peer, same.add(connection));
    socket.once("close", () => this.#forget(connection));
    // All callers of this machine have one address: there is none to tell a flood from the others by.
    if (peer !== thisMachine && same.size > this.shares.unknownPerPeer) this.#end(oldestOf(same));
    else if (this.#unknown.size > this.shares.unknown) this.#end(oldestOf(this.#unknown));
  }

  #asked(socket: Socket, response: ServerResponse): void {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined) return;
    connection.requests += 1;
    if (connection.requests > maxPipelined) this.#end(connection);
    response.once("close", () => {
      connection.requests -= 1;
    });
  }

  #hasRoomFor(project: string | undefined): boolean {
    const { known, tenants, perTenant } = this.shares;
    const count = (of: string | undefined) => this.#known.get(of)?.size ?? 0;
    const ofTenants = [...this.#known.keys()].filter((one) => one !== undefined);
    const taken = ofTenants.reduce((sum, one) => sum + count(one), 0);
    if (project === undefined) return taken + count(undefined) < known;
    if (count(project) >= perTenant) return false;
    // One below an equal share always gets one: no other tenant's connections keep it out.
    return taken < tenants || count(project) < Math.floor(tenants / Math.max(1, ofTenants.length));
  }

  /** Ends the caller's oldest connection without a request. False if it has none. */
  #endIdle(project: string | undefined): boolean {
    const idle = idleOf(this.#known.get(project) ?? []);
    this.#end(idle);
    return idle !== undefined;
  }

  #end(connection: Connection | undefined): void {
    if (connection === undefined) return;
    // Its close follows a turn later, and it counts until then otherwise.
    this.#forget(connection);
    connection.socket.destroy();
  }

  #forget(connection: Connection): void {
    this.#unknown.delete(connection);
    remove(this.#unknownByPeer, connection.peer, connection);
    if (connection.owner !== undefined) remove(this.#known, projectOf(connection.owner), connection);
  }
}

const tooMany =
  "Too many open connections of this caller: close some, or raise server.maxConnections and the limit of open files.";

const thisMachine = "this machine";

/** Who can take many addresses counts once: this machine, and a network of IPv6 (/64). */
function peerOf(address = ""): string {
  const bare = address.replace(/^::ffff:/, "");
  if (bare === "" || isLoopback(bare)) return thisMachine;
  return isIPv6(bare) ? networkOf(bare) : bare;
}

/** The first four groups of an IPv6 address. */
function networkOf(address: string): string {
  const [head = "", tail] = address.split("::");
  const groups = (text: string) => text.split(":").filter((group) => group !== "");
  const [left, right] = [groups(head), groups(tail ?? "")];
  const zeros = tail === undefined ? [] : Array<string>(8 - left.length - right.length).fill("0");
  return [...left, ...zeros, ...right].slice(0, 4).join(":");
}

/** The oldest that isn't being answered, else the oldest. */
function oldestOf(connections: ReadonlySet<Connection>): Connection | undefined {
  const [oldest] = connections;
  return idleOf(connections) ?? oldest;
}

/** The first one without a request. */
function idleOf(connections: Iterable<Connection>): Connection | undefined {
  for (const connection of connections) if (connection.requests === 0) return connection;
  return undefined;
}

function projectOf(owner: ConnectionOwner): string | undefined {
  return owner === "operator" ? undefined : owner.project;
}

function isSame(one: ConnectionOwner | undefined, other: ConnectionOwner): boolean {
  return one !== undefined && projectOf(one) === projectOf(other);
}

function remove<Key>(map: Map<Key, Set<Connection>>, key: Key, connection: Connection): void {
  const all = map.get(key);
  all?.delete(connection);
  if (all?.size === 0) map.delete(key);
}

/** What Node's parser of HTTP takes from `onIncoming`: the rest of what was read is no longer HTTP. */
const leaveRest = 2;

/**
 * Once a connection has ended, none of its further requests is built. Node parses everything that a read brought, also
 * after the first request in it ended the connection: 64 KiB hold 2,400 requests, which take 30 ms.
 *
 * Node has no public way to stop its parser. `parser.onIncoming` is the same in 22, 24 and 26; in a version without it, the rest is
 * built.
 */
function endParsingWith(socket: Socket): void {
  const parser: unknown = Reflect.get(socket, "parser");
  if (typeof parser !== "object" || parser === null) return;
  const onIncoming: unknown = Reflect.get(parser, "onIncoming");
  if (typeof onIncoming !== "function") return;
  Reflect.set(parser, "onIncoming", (...given: unknown[]): unknown => {
    const taken: unknown = Reflect.apply(onIncoming, parser, given);
    return socket.destroyed ? leaveRest : taken;
  });
}
