import { chmod, chown, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { ExposedHandlers } from "@ambit/backend-kit/http";
import { type FileOwner, inFolder, type OpenFolder, openFolder } from "@ambit/backend-kit/safe-fs";
import { type Exposure, type FetchHandler, SandboxFailed } from "@ambit/core/plugin";

export function listening(
  server: Server,
  where: { path: string } | { host: string; port: number },
): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(new SandboxFailed(`The runner can't listen: ${error.message}`, { cause: error })),
    );
    server.listen(where, () => resolve());
  });
}

/** Stops listening; resolves when the last connection is closed. */
export function closed(server: Server): Promise<void> {
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
      // By descriptor: the path of a socket is limited to 107 bytes.
      await listening(channel.connections, { path: inFolder(folder, name) });
      await chmod(channel.path, 0o600);
      if (owner !== undefined) await chown(channel.path, owner.uid, owner.gid);
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
