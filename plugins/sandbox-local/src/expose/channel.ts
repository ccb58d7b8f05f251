import { chmod, chown, rm } from "node:fs/promises";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import {
  type Exposure,
  type FetchHandler,
  inFolder,
  matchesBearer,
  newToken,
  type OpenFolder,
  type Ownership,
  openFolder,
  requireBearer,
  SandboxFailed,
} from "@ambit/core/plugin";
import { getRequestListener } from "@hono/node-server";
import { putThrough } from "./switchboard.js";

/** Serves a handler on the host's loopback, for processes that share the host's network. */
export async function exposeOnLoopback(handler: FetchHandler): Promise<Exposure> {
  const token = newToken();
  const server = serve(requireBearer(token, handler));
  await listening(server, { host: "127.0.0.1", port: 0 });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    token,
    close: () => closed(server),
  };
}

/**
 * A session's own unix socket, the only way out of its jails' empty network. Everything that is exposed answers at
 * one place and is told apart by its token, so that one relay in a jail reaches also what is exposed later.
 */
export class SessionChannel {
  /** Connections that ask for somewhere else: whoever serves the boundary's proxy listens here. */
  readonly proxied = createServer({ allowHalfOpen: true });
  /** On the host. */
  readonly path: string;
  readonly #folder: OpenFolder;
  readonly #listener: Server;
  readonly #http: HttpServer;
  readonly #handlers = new Map<string, FetchHandler>();
  readonly #connections = new Set<Socket>();

  private constructor(folder: OpenFolder, path: string) {
    this.#folder = folder;
    this.path = path;
    this.#http = serve((request) => this.#answer(request));
    this.#listener = createServer({ allowHalfOpen: true }, (connection) => {
      this.#connections.add(connection);
      connection.once("close", () => this.#connections.delete(connection));
      putThrough(connection, (line) => {
        if (line === "proxy") this.proxied.emit("connection", connection);
        else this.#http.emit("connection", connection);
      });
    });
  }

  /** @param owner the only one who may connect, when the session has a user of its own. */
  static async open(sessionFolder: string, owner: Ownership | undefined): Promise<SessionChannel> {
    const folder = await openFolder(sessionFolder);
    const channel = new SessionChannel(folder, join(sessionFolder, name));
    try {
      // By descriptor: a socket's path may have 107 bytes at most.
      await listening(channel.#listener, { path: inFolder(folder, name) });
      await chmod(channel.path, 0o600);
      if (owner !== undefined) await chown(channel.path, owner.uid, owner.gid);
    } catch (error) {
      await channel.close();
      throw error;
    }
    return channel;
  }

  expose(url: string, handler: FetchHandler): Exposure {
    const token = newToken();
    this.#handlers.set(token, handler);
    return {
      url,
      token,
      close: async () => {
        this.#handlers.delete(token);
      },
    };
  }

  async close(): Promise<void> {
    this.#handlers.clear();
    for (const connection of this.#connections) connection.destroy();
    await Promise.all([closed(this.#listener), closed(this.#http)]);
    await rm(this.path, { force: true });
    await this.#folder.handle.close();
  }

  #answer(request: Request): Response | Promise<Response> {
    const authorization = request.headers.get("authorization");
    for (const [token, handler] of this.#handlers) {
      if (matchesBearer(authorization, token)) return handler(request);
    }
    // With a token that nobody can have: one wording for every refusal.
    return requireBearer(newToken(), () => new Response())(request);
  }
}

const name = "channel.sock";

function serve(handler: FetchHandler): HttpServer {
  return createHttpServer(getRequestListener(handler, { overrideGlobalObjects: false }));
}

function listening(server: Server, where: { path: string } | { host: string; port: number }): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(new SandboxFailed(`The runner can't listen: ${error.message}`, { cause: error })),
    );
    server.listen(where, () => resolve());
  });
}

function closed(server: Server | HttpServer): Promise<void> {
  return new Promise<void>((resolve) => {
    server.close(() => resolve());
    if ("closeAllConnections" in server) server.closeAllConnections();
  });
}
