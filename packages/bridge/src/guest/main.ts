import { Socket } from "node:net";
import { type DaemonSettings, protocolVersion, readSettings } from "../messages.js";
import { DirectTransport } from "../transport/byte-format.js";
import { Daemon } from "./daemon.js";
import { attach, ownPipes, serve } from "./pipes.js";

// Before anything uses the pool, which is made at its first use: its threads count towards the sandbox's limit of processes.
process.env.UV_THREADPOOL_SIZE = "1";

// `attach` is the pipe's command, started again for each pipe; `serve` outlives them and holds everything. Both are for lines,
// or for bytes. `first` serves bytes, and its own standard streams are the first pipe. `direct` is both, for a single permanent
// pipe. A rejection ends the process with its error.
const [mode, ...settingWords] = process.argv.slice(2);
const settings = readSettings(settingWords);
if (mode === "serve" || mode === "serve-bytes") void serve(settings, mode === "serve-bytes");
else if (mode === "first") void serve(settings, true, ownPipes());
else if (mode === "direct") serveDirectly(settings);
else
  attach(settings, mode === "attach-bytes").catch((error: Error) => {
    // Where the runner reads it: a pipe may carry standard output alone.
    process.stdout.write(`${error.message}\n`, () => process.exit(1));
  });

/**
 * Serves the pipe whose command this process is, and ends with it. Nothing is done before the runner greets: it may load this
 * program while it still looks at the sandbox.
 */
function serveDirectly(settings: DaemonSettings): void {
  const { stdin } = process;
  stdin.once("data", (first: Buffer) => {
    stdin.pause();
    begin(settings, first);
  });
  stdin.once("end", () => process.exit());
}

function begin(settings: DaemonSettings, first: Buffer): void {
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
