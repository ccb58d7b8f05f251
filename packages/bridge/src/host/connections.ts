import { createServer } from "node:http";
import type { Server } from "node:net";
import type { Duplex } from "node:stream";
import { ExposedHandlers } from "@ambit/backend-kit/http";
import { type Exposure, type FetchHandler, lazy, SandboxFailed } from "@ambit/core/plugin";
import type { OwnPort } from "../remote-sandbox.js";
import type { Channel, ChannelListener, Channels } from "../transport/channels.js";
import { done, duplexOf, listening, refusal } from "./streams.js";

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

/** Connections into one sandbox at a time, including those that wait for its answer. */
const maxConnections = 128;
/** Milliseconds that the guest daemon gets to say whether something inside listens. */
const answerMs = 4_000;

/**
 * The runner's connections to servers inside. Each is a channel that the runner opens: the guest daemon can open none, and the
 * runner connects to no address for it, so all that it can be given is what the sandbox sends.
 */
export class Entrances {
  readonly #channels: () => Channels;
  readonly #ports: () => readonly number[];
  readonly #open = new Set<Duplex>();

  /** @param ports the only ones that may be entered. */
  constructor(channels: () => Channels, ports: () => readonly number[]) {
    this.#channels = channels;
    this.#ports = ports;
  }

  /**
   * @param sandbox its id, for errors.
   * @throws SandboxFailed for a port that the boundary doesn't list, and where nothing inside listens
   */
  async enter(port: number, sandbox: string): Promise<Duplex> {
    if (!this.#ports().includes(port))
      throw new SandboxFailed(`Port ${port} isn't open in the sandbox ${sandbox}: name it in ports`);
    if (this.#open.size >= maxConnections) {
      const reason = `The sandbox ${sandbox} has ${maxConnections} connections from outside already`;
      throw new SandboxFailed(reason, { concerns: "session" });
    }
    const connection = await this.#ask(port);
    if (connection !== undefined) return connection;
    const reason = `Nothing listens on port ${port} in the sandbox ${sandbox}`;
    throw new SandboxFailed(reason, { concerns: "session" });
  }

  close(): void {
    for (const connection of this.#open) connection.destroy();
  }

  /** Undefined where nothing listens, or the answer takes too long. */
  #ask(port: number): Promise<Duplex | undefined> {
    return new Promise((resolve, reject) => {
      const channel = this.#channels().open("enter", (opened) => {
        const { duplex, listener } = connectionOn(opened);
        const timer = setTimeout(() => duplex.destroy(), answerMs);
        this.#open.add(duplex);
        // Its user has a handler of its own from the answer on.
        duplex.on("error", () => undefined);
        duplex.once("close", () => {
          clearTimeout(timer);
          this.#open.delete(duplex);
          resolve(undefined);
        });
        const message = (said: unknown) => {
          clearTimeout(timer);
          if (done.safeParse(said).success) resolve(duplex);
          else duplex.destroy();
        };
        return { ...listener, message };
      });
      channel.send({ port }).catch(reject);
    });
  }
}

/** What came before the end from inside can still be read when the channel has closed. */
function connectionOn(channel: Channel): { readonly duplex: Duplex; readonly listener: ChannelListener } {
  const { duplex, listener } = duplexOf(channel);
  let hasEnded = false;
  return {
    duplex,
    listener: {
      ...listener,
      end: (stream) => {
        hasEnded = true;
        listener.end?.(stream);
      },
      closed: () => {
        if (hasEnded && !duplex.readableEnded) duplex.once("end", () => duplex.destroy());
        else duplex.destroy();
      },
    },
  };
}
