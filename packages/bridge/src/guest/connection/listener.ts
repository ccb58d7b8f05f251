import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { requestOf } from "../../messages.js";
import type { Channel, ChannelListener } from "../../transport/channel.js";
import type { Channels } from "../../transport/channels.js";
import { replyWithFailure } from "../reply-with-failure.js";
import { carry } from "./carry.js";

/**
 * Concurrent connections of one listener; others are dropped, so that a client can't use up all descriptors.
 */
const maxConnections = 256;

/** Forwards connections on the sandbox's loopback to the runner, or to a socket inside. */
export class Listeners {
  readonly #channels: () => Channels;
  readonly #servers = new Set<Server>();

  constructor(channels: () => Channels) {
    this.#channels = channels;
  }

  /** The handlers of a channel of kind `listen`. Closing it closes the port. */
  listen(channel: Channel): ChannelListener {
    let path: string | undefined;
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      if (path === undefined) this.#carry(socket);
      else join(socket, path);
    });
    server.maxConnections = maxConnections;
    // No later error ends it: only the connection that couldn't be accepted is lost.
    server.on("error", () => undefined);
    this.#servers.add(server);
    return {
      message: (message) =>
        replyWithFailure(channel, async () => {
          const { except, to } = requestOf("listen", message);
          path = to;
          await channel.send({ port: await listenExcept(server, except) });
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
    this.#channels().open("connection", (channel) => carry(socket, channel));
  }
}

/** Ports that the system may choose before it is given up: few are excepted. */
const maxChoices = 1_000;

/** @returns the port, which is one that the system chose. */
async function listenExcept(server: Server, except: readonly number[]): Promise<number> {
  for (let choices = 0; choices < maxChoices; choices += 1) {
    await once(server.listen({ host: "127.0.0.1", port: 0 }), "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    if (!except.includes(address.port)) return address.port;
    await new Promise((resolve) => server.close(resolve));
  }
  throw new Error(`${maxChoices} ports were excepted`);
}

/** Connects a client with a Unix socket: both directions at the pace of their readers, each with its own end. */
function join(client: Socket, path: string): void {
  const other = connect({ path, allowHalfOpen: true });
  for (const [one, another] of [
    [client, other],
    [other, client],
  ] as const) {
    one.on("error", () => undefined);
    // What it sent before its end still arrives; after a failure, nothing more does.
    one.once("close", (hadError) => (hadError ? another.destroy() : another.destroySoon()));
    one.pipe(another);
  }
}
