import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { requestOf } from "../messages.js";
import {
  type Channel,
  type ChannelListener,
  type Channels,
  OutputPump,
  replyWithFailure,
} from "../transport/channels.js";
import { streams } from "../transport/transport.js";

/** A connection inside as a channel: both directions at the pace of their readers, each with its own end. */
export function carry(socket: Socket, channel: Channel): ChannelListener {
  // A peer that drops the connection isn't an error: the runner gets its close.
  socket.on("error", () => undefined);
  const outputPump = new OutputPump(socket, channel, streams.main);
  let sent: Promise<void> | undefined;
  socket.once("end", () => {
    sent = outputPump.sent().then(() => channel.end(streams.main));
  });
  // What came before the peer's end is still sent, no matter how slow the reader is.
  socket.once("close", () => void (sent ?? Promise.resolve()).then(() => channel.close()));
  let hasEnded = false;
  return {
    data: (_lane, bytes, taken) => {
      if (socket.destroyed) taken();
      else socket.write(bytes, () => taken());
    },
    end: () => {
      hasEnded = true;
      socket.end();
    },
    // What was sent before the end still arrives, no matter how slow the reader is.
    closed: () => (hasEnded ? socket.destroySoon() : socket.destroy()),
  };
}

/** The sandbox's own loopback, and nothing else: a server listens on one of them, or on every address. */
const loopback = ["127.0.0.1", "::1"] as const;

/**
 * The handlers of a channel of kind `enter`. It is the runner that compares the port with the boundary's list, and that gives
 * an attempt its time: closing the channel ends the attempt.
 */
export function enter(channel: Channel): ChannelListener {
  const attempt = new AbortController();
  return {
    message: (message) =>
      replyWithFailure(channel, async () => {
        const { port } = requestOf("enter", message);
        const socket = await connectTo(port, attempt.signal);
        if (channel.isClosed) return void socket.destroy();
        channel.listener = carry(socket, channel);
        await channel.send({ done: true });
      }),
    closed: () => attempt.abort(),
  };
}

/** @throws Error where nothing listens. */
async function connectTo(port: number, signal: AbortSignal): Promise<Socket> {
  let failure: unknown;
  for (const host of loopback) {
    try {
      return await connected(connect({ host, port, allowHalfOpen: true, noDelay: true }), signal);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** Settles once it is made. The signal ends an attempt. */
function connected(socket: Socket, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const abandon = () => socket.destroy(new Error("abandoned"));
    signal.addEventListener("abort", abandon, { once: true });
    socket.once("error", reject);
    socket.once("connect", () => {
      signal.removeEventListener("abort", abandon);
      // Without a server, the system can connect a port with itself.
      if (socket.localPort === socket.remotePort) socket.destroy(new Error("connected with itself"));
      else resolve(socket);
    });
    if (signal.aborted) abandon();
  });
}

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
  for (const [source, destination] of [
    [client, other],
    [other, client],
  ] as const) {
    source.on("error", () => undefined);
    // What it sent before its end still arrives; after a failure, nothing more does.
    source.once("close", (hadError) => (hadError ? destination.destroy() : destination.destroySoon()));
    source.pipe(destination);
  }
}
