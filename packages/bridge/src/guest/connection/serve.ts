import { randomUUID } from "node:crypto";
import { chmodSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { protocolVersion } from "../../messages.js";
import { type PipeSignal, readLine, signalLine } from "../../transport/frame.js";
import { Lines } from "../../transport/lines.js";
import { maxLineLength } from "../../transport/payload.js";
import { FrameMissing, ReliableTransport } from "../../transport/reliable-transport.js";
import { Daemon } from "../daemon.js";
import { type DaemonSettings, socketOf } from "../settings.js";
import { SocketSink } from "./socket-sink.js";

type Hello = Extract<PipeSignal, readonly ["hello", ...unknown[]]>;

/** The runner's current connection. */
interface Attachment {
  readonly socket: Socket;
  readonly sink: SocketSink;
}

/** Holds the sandbox's processes and streams as long as the runner reconnects. */
export async function serve(settings: DaemonSettings): Promise<void> {
  await new SocketServer(settings).listen();
}

class SocketServer {
  /** A different one means that the daemon was killed, and everything that it held is lost. */
  readonly #epoch = randomUUID();
  readonly #settings: DaemonSettings;
  readonly #daemon: Daemon;
  readonly #server: Server;
  #transport: ReliableTransport;
  #key: string | undefined;
  /** Fence of the sandbox's owner. Undefined until one has connected. */
  #fence: number | undefined;
  #attempt = 0;
  /** Pending while the processes of an earlier owner are being ended. */
  #changing: Promise<void> | undefined;
  #current: Attachment | undefined;

  constructor(settings: DaemonSettings) {
    this.#settings = settings;
    this.#transport = this.#newTransport();
    this.#daemon = Daemon.start(settings, this.#transport);
    this.#server = createServer((socket) => this.#connected(socket));
  }

  async listen(): Promise<void> {
    const path = socketOf(this.#settings.folder);
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(path, resolve);
    });
    chmodSync(path, 0o600);
  }

  #newTransport(): ReliableTransport {
    return new ReliableTransport("inside", (frame) => this.#daemon.channels.deliver(frame));
  }

  #connected(socket: Socket): void {
    const lines = new Lines(maxLineLength);
    const attachment: Attachment = { socket, sink: new SocketSink(socket) };
    socket.on("error", () => undefined);
    socket.once("close", () => {
      if (this.#current !== attachment) return;
      this.#current = undefined;
      this.#transport.detach(attachment.sink);
    });
    socket.on("data", (bytes) => {
      try {
        for (const line of lines.push(bytes)) this.#read(attachment, line);
        if (this.#current === attachment) this.#daemon.recordActivity();
      } catch (error) {
        socket.destroy();
        // A missing frame is sent again over the next pipe; any other error is fatal.
        if (!(error instanceof FrameMissing)) throw error;
      }
    });
  }

  #read(attachment: Attachment, text: string): void {
    const { sink } = attachment;
    const line = readLine("runner", text);
    if (line.kind === "noise") return;
    if (line.kind === "signal" && line.signal[0] === "hello") {
      this.#greeted(attachment, line.signal);
      return;
    }
    if (attachment !== this.#current) return;
    if (line.kind === "frame") this.#transport.accept(line, text.length);
    else if (line.signal[0] === "ack") this.#transport.acknowledged(line.signal[1]);
    else if (line.signal[0] === "ping") sink.write(signalLine("inside", ["pong"]));
  }

  #greeted(attachment: Attachment, [, version, key, attempt, received, fence = 0]: Hello): void {
    this.#key ??= key;
    this.#fence ??= fence;
    if (version === protocolVersion && key === this.#key && fence < this.#fence) {
      refuse(attachment);
      return;
    }
    const isNewOwner = fence > this.#fence;
    // An older pipe that arrives late must not replace a newer one.
    if (version !== protocolVersion || key !== this.#key || (attempt <= this.#attempt && !isNewOwner)) {
      attachment.socket.destroy();
      return;
    }
    this.#fence = fence;
    this.#attempt = attempt;
    const older = this.#current;
    this.#current = attachment;
    if (isNewOwner) {
      if (older !== undefined) refuse(older);
      this.#transport.close();
      this.#transport = this.#newTransport();
      this.#changing = this.#daemon.changeOwner(this.#transport);
    } else older?.socket.destroy();
    void this.#welcome(attachment, attempt, received);
  }

  /** First ends what an earlier owner had begun: after the greeting, none of its requests is in progress. */
  async #welcome(attachment: Attachment, attempt: number, received: number): Promise<void> {
    await this.#changing;
    if (this.#current !== attachment) return;
    const { sink } = attachment;
    sink.write(
      signalLine("inside", ["hello", protocolVersion, this.#epoch, attempt, this.#transport.received]),
    );
    this.#transport.attach(sink, received);
  }
}

/** Its owner no longer owns the sandbox. */
function refuse({ socket }: Attachment): void {
  socket.end(signalLine("inside", ["fenced"]));
}
