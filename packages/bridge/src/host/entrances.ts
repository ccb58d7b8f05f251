import type { Duplex } from "node:stream";
import { SandboxFailed } from "@ambit/core/plugin";
import type { Channel, ChannelListener } from "../transport/channel.js";
import type { Channels } from "../transport/channels.js";
import { done } from "./replies.js";
import { duplexOf } from "./streams.js";

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
