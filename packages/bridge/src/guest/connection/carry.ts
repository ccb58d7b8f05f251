import type { Socket } from "node:net";
import type { Channel, ChannelListener } from "../../transport/channel.js";
import { streams } from "../../transport/frame.js";
import { OutputPump } from "../output-pump.js";

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
