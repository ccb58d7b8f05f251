import { once } from "node:events";
import { chmod, chown, rm } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import { basename, join } from "node:path";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { listeningPort } from "@ambit/backend-kit";
import { ExposedHandlers, listenerOf } from "@ambit/backend-kit/http";
import { type FileOwner, inFolder, type OpenFolder, openFolder } from "@ambit/backend-kit/safe-fs";
import {
  type Exposure,
  type FetchHandler,
  newToken,
  requireBearer,
  SandboxFailed,
  type SandboxSpec,
} from "@ambit/core/plugin";
import { defaultProxyLimits, serverBudget } from "@ambit/egress/proxy";

function listening(server: Server, where: { path: string } | { host: string; port: number }): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(new SandboxFailed(`The runner can't listen: ${error.message}`, { cause: error })),
    );
    server.listen(where, () => resolve());
  });
}

/** Listens on a unix socket in the folder. @param owner the only user that may connect. Default: the runner's own. */
async function listenForOwner(
  server: Server,
  folder: OpenFolder,
  path: string,
  owner: FileOwner | undefined,
): Promise<void> {
  // By descriptor: the path of a socket is limited to 107 bytes.
  await listening(server, { path: inFolder(folder, basename(path)) });
  await chmod(path, 0o600);
  if (owner !== undefined) await chown(path, owner.uid, owner.gid);
}

/** Stops listening; resolves when the last connection is closed. */
function closed(server: Server): Promise<void> {
  return new Promise<void>((resolve) => server.close(() => resolve()));
}

/**
 * A session's own unix socket, the only connection out of its jails' empty network. All exposures share one address and
 * are distinguished by token, so that one relay in a jail also reaches what is exposed later.
 */
export class SessionChannel {
  /**
   * Its connections, for the boundary's proxy, which decides on each request and passes requests for exposures to
   * `answer`.
   */
  readonly connections = createServer({ allowHalfOpen: true });
  /** Answers a request for a path. */
  readonly listener: ExposedHandlers["listener"];
  /** On the host. */
  readonly path: string;
  readonly #folder: OpenFolder;
  readonly #handlers = new ExposedHandlers();
  readonly #open = new Set<Socket>();

  private constructor(folder: OpenFolder, path: string) {
    this.#folder = folder;
    this.path = path;
    this.listener = this.#handlers.listener;
    this.connections.on("connection", (connection) => {
      this.#open.add(connection);
      connection.on("error", () => connection.destroy());
      connection.once("close", () => this.#open.delete(connection));
    });
  }

  /** @param owner the only user that may connect, if the session has a separate user. */
  static async open(sessionFolder: string, owner: FileOwner | undefined): Promise<SessionChannel> {
    const folder = await openFolder(sessionFolder);
    const channel = new SessionChannel(folder, join(sessionFolder, name));
    try {
      await listenForOwner(channel.connections, folder, channel.path, owner);
    } catch (error) {
      await channel.close();
      throw error;
    }
    return channel;
  }

  expose(url: string, handler: FetchHandler): Exposure {
    return this.#handlers.add(url, handler);
  }

  async close(): Promise<void> {
    this.#handlers.clear();
    for (const connection of this.#open) connection.destroy();
    await closed(this.connections);
    await rm(this.path, { force: true });
    await this.#folder.handle.close();
  }
}

const name = "channel.sock";

/** Milliseconds that a jail gets to say whether something inside listens. */
const answerMs = 2_000;
/** Connections into one jail at a time, including those that wait for its answer. */
const maxConnections = 128;

/**
 * The way into one jail: a unix socket of its own, where its relay waits for the runner to name a port. The runner never
 * connects to anything here: it only accepts, and all that it can be given is a connection from inside this jail. A path
 * that a jail exchanged, or a service of this host, can't be reached by way of it.
 */
export class JailInbound {
  /** On the host. */
  readonly path: string;
  readonly #server = createServer({ allowHalfOpen: true });
  readonly #folder: OpenFolder;
  readonly #open = new Set<Socket>();
  readonly #asking: ((relay: Socket | undefined) => void)[] = [];
  /** A relay that waits to be asked. One at a time: any process inside can connect. */
  #waiting: Socket | undefined;
  #closed: Promise<void> | undefined;

  private constructor(folder: OpenFolder, path: string) {
    this.#folder = folder;
    this.path = path;
    this.#server.on("connection", (relay) => this.#arrived(relay));
  }

  /** @param owner the only user that may connect, if the session has a separate user. */
  static async open(
    sessionFolder: string,
    number: number,
    owner: FileOwner | undefined,
  ): Promise<JailInbound> {
    const name = `in-${number}.sock`;
    const folder = await openFolder(sessionFolder);
    const inbound = new JailInbound(folder, join(sessionFolder, name));
    try {
      await listenForOwner(inbound.#server, folder, inbound.path, owner);
      return inbound;
    } catch (error) {
      await inbound.close();
      throw error;
    }
  }

  /** A connection to this port of the jail's loopback; undefined where nothing answers there. */
  async connect(port: number): Promise<Socket | undefined> {
    if (this.#closed !== undefined || this.#open.size + this.#asking.length >= maxConnections)
      return undefined;
    const relay = await this.#take();
    if (relay === undefined) return undefined;
    const patience = new AbortController();
    const answered = await Promise.race([
      this.#ask(relay, port, patience.signal).catch(() => false),
      delay(answerMs, false, { signal: patience.signal }),
    ]).catch(() => false);
    patience.abort();
    if (answered) return relay;
    relay.destroy();
    return undefined;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    for (const waits of this.#asking.splice(0)) waits(undefined);
    for (const connection of this.#open) connection.destroy();
    await closed(this.#server);
    await rm(this.path, { force: true });
    await this.#folder.handle.close();
  }

  #arrived(relay: Socket): void {
    if (this.#closed !== undefined) return void relay.destroy();
    const request = this.#asking.shift();
    if (request === undefined && this.#waiting !== undefined) return void relay.destroy();
    this.#open.add(relay);
    relay.on("error", () => relay.destroy());
    relay.once("close", () => {
      this.#open.delete(relay);
      if (this.#waiting === relay) this.#waiting = undefined;
    });
    if (request !== undefined) return void request(relay);
    this.#waiting = relay;
    // One that ended without being asked is noticed only while it is read.
    relay.once("readable", this.#spoke);
  }

  /** A relay says nothing before it is asked. */
  readonly #spoke = (): void => {
    this.#waiting?.destroy();
    this.#waiting = undefined;
  };

  #take(): Promise<Socket | undefined> {
    const relay = this.#waiting;
    if (relay !== undefined) {
      this.#waiting = undefined;
      relay.off("readable", this.#spoke);
      return Promise.resolve(relay);
    }
    return new Promise((resolve) => {
      const settle = (socket: Socket | undefined) => {
        clearTimeout(timer);
        resolve(socket);
      };
      const timer = setTimeout(() => {
        this.#asking.splice(this.#asking.indexOf(settle), 1);
        resolve(undefined);
      }, answerMs);
      this.#asking.push(settle);
    });
  }

  /** Whether something listens on the port. From then on the connection leads there. */
  async #ask(relay: Socket, port: number, signal: AbortSignal): Promise<boolean> {
    const question = Buffer.alloc(2);
    question.writeUInt16BE(port);
    relay.write(question);
    for (;;) {
      const answer: unknown = relay.read(1);
      if (Buffer.isBuffer(answer)) return answer[0] === 1;
      if (relay.readableEnded || relay.destroyed) return false;
      await Promise.race([once(relay, "readable", { signal }), once(relay, "end", { signal })]);
    }
  }
}

/**
 * A connection of the runner to a port inside. @param jails the ways in to the session's own, oldest first.
 * @throws SandboxFailed for a port that the boundary doesn't list, and where nothing inside listens
 */
export async function enterJails(
  { id, boundary }: Pick<SandboxSpec, "id" | "boundary">,
  jails: readonly JailInbound[],
  port: number,
): Promise<Duplex> {
  if (boundary.inbound?.includes(port) !== true)
    throw new SandboxFailed(`Port ${port} isn't open in the sandbox ${id}: name it in ports`);
  for (const jail of jails) {
    const connection = await jail.connect(port);
    if (connection !== undefined) return connection;
  }
  throw new SandboxFailed(`Nothing listens on port ${port} in the sandbox ${id}`, { concerns: "session" });
}

/** Serves a handler on the host's loopback, for processes that share the host's network. */
export async function exposeOnLoopback(handler: FetchHandler): Promise<Exposure> {
  const token = newToken();
  const server = createHttpServer(
    {
      headersTimeout: defaultProxyLimits.handshakeMs,
      requestTimeout: defaultProxyLimits.bodyMs,
      connectionsCheckingInterval: 1_000,
    },
    listenerOf(requireBearer(token, handler)),
  );
  // Every process of the host can connect, so the number of open connections is limited before anything is read.
  server.maxConnections = defaultProxyLimits.connections;
  const share = serverBudget().join();
  server.on("connection", (connection) => {
    if (!share.take()) return void connection.destroy();
    connection.once("close", () => share.release());
  });
  await listening(server, { host: "127.0.0.1", port: 0 });
  const port = listeningPort(server);
  return {
    url: `http://127.0.0.1:${port}`,
    token,
    close: async () => {
      share.leave();
      const done = closed(server);
      server.closeAllConnections();
      await done;
    },
  };
}
