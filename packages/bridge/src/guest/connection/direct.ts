import { Socket } from "node:net";
import { protocolVersion } from "../../messages.js";
import { DirectTransport } from "../../transport/direct-transport.js";
import { Daemon } from "../daemon.js";
import type { DaemonSettings } from "../settings.js";

/**
 * Serves the pipe whose command this process is, and ends with it. Nothing is done before the runner greets: it may load this
 * program while it still looks at the sandbox.
 */
export function serveDirectly(settings: DaemonSettings): void {
  const { stdin } = process;
  stdin.once("data", (first: Buffer) => {
    stdin.pause();
    serve(settings, first);
  });
  stdin.once("end", () => process.exit());
}

function serve(settings: DaemonSettings, first: Buffer): void {
  const { stdin } = process;
  // Not `process.stdout`, whose writes to a pipe are synchronous and block everything else.
  const stdout = new Socket({ fd: 1, readable: false, writable: true });
  const transport: DirectTransport = new DirectTransport({
    frame: (frame) => daemon.channels.deliver(frame),
    data: (channel, stream, bytes) => daemon.channels.deliverData(channel, stream, bytes),
    signal: (op) => {
      if (op === "hello") transport.signal("hello", protocolVersion);
      if (op === "ping") transport.signal("pong", 0);
    },
  });
  const daemon = Daemon.start(settings, transport);
  transport.attach(stdout);
  const receive = (bytes: Buffer) => {
    transport.accept(bytes);
    daemon.recordActivity();
  };
  stdin.removeAllListeners("end");
  stdin.on("data", receive);
  // The runner or the platform closed the pipe, which can't be reopened.
  for (const event of ["end", "close", "error"]) stdin.once(event, () => daemon.end());
  stdout.once("error", () => daemon.end());
  receive(first);
  stdin.resume();
}
