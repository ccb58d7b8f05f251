import { connect, type Socket } from "node:net";
import { requestOf } from "../../messages.js";
import type { Channel, ChannelListener } from "../../transport/channel.js";
import { replyWithFailure } from "../reply-with-failure.js";
import { carry } from "./carry.js";

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
