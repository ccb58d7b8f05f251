import { createServer, type Server, type Socket } from "node:net";
import type { Channel, ChannelListener } from "../../transport/channel.js";
import type { Channels } from "../../transport/channels.js";
import { streams } from "../../transport/frame.js";
import { OutputPump } from "../output-pump.js";
import { replyWithFailure } from "../reply-with-failure.js";

/**
 * Concurrent connections of one listener; others are dropped, so that a client can't use up all descriptors.
 */
const maxConnections = 256;

/** Forwards connections on the sandbox's loopback to the runner. */
export class Listeners {
  readonly #channels: () => Channels;
  readonly #servers = new Set<Server>();

  constructor(channels: () => Channels) {
    this.#channels = channels;
  }

  /** The handlers of a channel of kind `listen`. Closing it closes the port. */
  listen(channel: Channel): ChannelListener {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#carry(socket));
    server.maxConnections = maxConnections;
    // No later error ends it: only the connection that couldn't be accepted is lost.
    server.on("error", () => undefined);
    this.#servers.add(server);
    return {
      message: () =>
        replyWithFailure(channel, async () => {
          await new Promise<void>((resolve, reject) => {
            server.once("error", reject);
            server.listen({ host: "127.0.0.1", port: 0 }, resolve);
          });
          const address = server.address();
          if (address === null || typeof address === "string") throw new Error("no port");
          await channel.send({ port: address.port });
        }),
      closed: () => {
        this.#servers.delete(server);
        server.close();
      },
    };
  }

  close(): void {
    for (const server of this.#servers) server.close();
  }

  #carry(socket: Socket): void {
    this.#channels().open("connection", (channel) => {
      socket.on("error", () => undefined);
      socket.once("close", () => channel.close());
      // A client that drops the connection isn't an error: the runner gets its close.
      const outputPump = new OutputPump(socket, channel, streams.main);
      socket.once("end", () => void outputPump.sent().then(() => channel.end(streams.main)));
      let hasEnded = false;
      return {
        data: (_lane, bytes, taken) => {
          if (socket.destroyed) taken();
          else socket.write(bytes, taken);
        },
        end: () => {
          hasEnded = true;
          socket.end();
        },
        // What was sent before the end still arrives, no matter how slow the reader is.
        closed: () => (hasEnded ? socket.destroySoon() : socket.destroy()),
      };
    });
  }
}
