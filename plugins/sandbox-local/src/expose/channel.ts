import { chmod, chown, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { ExposedHandlers } from "@ambit/backend-kit/http";
import { inFolder, type OpenFolder, type Ownership, openFolder } from "@ambit/backend-kit/safe-fs";
import type { Exposure, FetchHandler } from "@ambit/core/plugin";
import { closed, listening } from "./serve.js";

/**
 * A session's own unix socket, the only way out of its jails' empty network. Everything that is exposed answers at
 * one place and is told apart by its token, so that one relay in a jail reaches also what is exposed later.
 */
export class SessionChannel {
  /** Its connections, for the boundary's proxy: it judges each request, and hands over to `answer` what is ours. */
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

  /** @param owner the only one who may connect, when the session has a user of its own. */
  static async open(sessionFolder: string, owner: Ownership | undefined): Promise<SessionChannel> {
    const folder = await openFolder(sessionFolder);
    const channel = new SessionChannel(folder, join(sessionFolder, name));
    try {
      // By descriptor: a socket's path may have 107 bytes at most.
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
