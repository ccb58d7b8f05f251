import { createServer } from "node:http";
import type { Server } from "node:net";
import type { Duplex } from "node:stream";
import { lazy } from "@ambit/backend-kit";
import { ExposedHandlers } from "@ambit/backend-kit/http";
import { type Exposure, type FetchHandler, SandboxFailed } from "@ambit/core/plugin";
import type { Channel, ChannelListener } from "../transport/channel.js";
import type { Channels } from "../transport/channels.js";
import type { OwnPort } from "./remote-sandbox.js";
import { listening, refusal } from "./replies.js";
import { duplexOf } from "./streams.js";

/** Handlers on the sandbox's loopback: all at one port, distinguished by their tokens. */
export class Exposures {
  readonly #channels: () => Channels;
  /** Ports inside that are for servers of the run. */
  readonly #foreign: () => readonly number[];
  readonly #handlers = new ExposedHandlers();
  #server: Server;
  readonly #connections = new Set<Duplex>();
  readonly #port = lazy(() => this.#listen({}));

  constructor(channels: () => Channels, foreign: () => readonly number[]) {
    this.#channels = channels;
    this.#foreign = foreign;
    this.#server = createServer(this.#handlers.listener);
  }

  /** @throws SandboxFailed */
  async expose(handler: FetchHandler): Promise<Exposure> {
    const port = await this.#port();
    return this.#handlers.add(`http://127.0.0.1:${port}`, handler);
  }

  /** From now on, the server's connections are those that are made inside. */
  async handOver(server: Server): Promise<OwnPort> {
    const port = await this.#port();
    this.#server = server;
    return { port, listener: this.#handlers.listener };
  }

  /** @returns a port on the loopback inside whose connections lead to this Unix socket inside. @throws SandboxFailed */
  async forward(to: string): Promise<number> {
    return await this.#listen({ to });
  }

  /** The handlers of a connection that was made inside. */
  connected(channel: Channel): ChannelListener {
    const { duplex, listener } = duplexOf(channel);
    // A client that disconnects early isn't an error.
    duplex.on("error", () => undefined);
    this.#connections.add(duplex);
    duplex.once("close", () => this.#connections.delete(duplex));
    this.#server.emit("connection", duplex);
    return listener;
  }

  close(): void {
    this.#handlers.clear();
    // A server that doesn't listen keeps no list of its connections.
    for (const connection of this.#connections) connection.destroy();
  }

  #listen(more: { readonly to?: string }): Promise<number> {
    const except = this.#foreign();
    return new Promise((resolve, reject) => {
      const channel = this.#channels().open("listen", () => ({
        message: (message) => {
          const parsed = listening.safeParse(message);
          // A connection into the sandbox must not end at the runner again.
          const isForeign = parsed.success && except.includes(parsed.data.port);
          if (parsed.success && !isForeign) return resolve(parsed.data.port);
          const refused = refusal.safeParse(message);
          const why = isForeign
            ? ": its port is the run's"
            : refused.success
              ? `: ${refused.data.refused}`
              : "";
          reject(new SandboxFailed(`Nothing can be exposed in the sandbox${why}`));
        },
        closed: () => reject(new SandboxFailed("The sandbox is closed, or was lost")),
      }));
      channel.send({ except, ...more }).catch(reject);
    });
  }
}
