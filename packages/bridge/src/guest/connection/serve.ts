import { chmodSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { protocolVersion } from "../../messages.js";
import { ByteFormat } from "../../transport/byte-format.js";
import type { PipeSignal } from "../../transport/frame.js";
import { LineFormat } from "../../transport/line-format.js";
import type { PipeEvent, PipeFormat } from "../../transport/pipe-format.js";
import { FrameMissing } from "../../transport/transport.js";
import { Daemon } from "../daemon.js";
import { randomText } from "../random.js";
import { type DaemonSettings, socketOf } from "../settings.js";
import { type OwnPipes, type TakenPipes, takeOver } from "./hand-over.js";
import { ByteSink, type GuestSink, LineSink } from "./socket-sink.js";

type Hello = Extract<PipeSignal, readonly ["hello", ...unknown[]]>;

/** The runner's current connection. */
interface Attachment<Written> {
  readonly socket: Socket;
  readonly sink: GuestSink<Written>;
}

const none = Buffer.alloc(0);

/** Lines or bytes. */
interface Wire<Written> {
  newFormat(daemon: () => Daemon): PipeFormat<Written>;
  newSink(socket: Socket): GuestSink<Written>;
}

const lineWire: Wire<string> = {
  newFormat: (daemon) => new LineFormat("inside", (frame) => daemon().channels.deliver(frame)),
  newSink: (socket) => new LineSink(socket),
};
const byteWire: Wire<Uint8Array> = {
  newFormat: (daemon) =>
    new ByteFormat({
      frame: (frame) => daemon().channels.deliver(frame),
      data: (channel, stream, bytes) => daemon().channels.deliverData(channel, stream, bytes),
    }),
  newSink: (socket) => new ByteSink(socket),
};

/**
 * Holds the sandbox's processes and streams as long as the runner reconnects.
 *
 * @param first a pipe that is there already. It is served once others can be.
 */
export async function serve(settings: DaemonSettings, isBinary: boolean, first?: OwnPipes): Promise<void> {
  if (isBinary) await new SocketServer(settings, byteWire).listen(first);
  else await new SocketServer(settings, lineWire).listen();
}

class SocketServer<Written> {
  /** A different one means that the daemon was killed, and everything that it held is lost. */
  readonly #epoch = randomText();
  readonly #settings: DaemonSettings;
  readonly #daemon: Daemon;
  readonly #server: Server;
  readonly #wire: Wire<Written>;
  readonly #format: PipeFormat<Written>;
  #key: string | undefined;
  /** Fence of the sandbox's owner. Undefined until one has connected. */
  #fence: number | undefined;
  #attempt = 0;
  /** Pending while the processes of an earlier owner are being ended. */
  #changing: Promise<void> | undefined;
  #current: Attachment<Written> | undefined;

  constructor(settings: DaemonSettings, wire: Wire<Written>) {
    this.#settings = settings;
    this.#wire = wire;
    this.#format = wire.newFormat(() => this.#daemon);
    this.#daemon = Daemon.start(settings, this.#format.transport);
    this.#server = createServer((socket) => this.#connected(socket));
  }

  async listen(first?: OwnPipes): Promise<void> {
    const path = socketOf(this.#settings.folder);
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(path, resolve);
    });
    chmodSync(path, 0o600);
    if (first === undefined) return;
    first.command.on("error", () => undefined);
    this.#attach(first.command, first);
  }

  /** What it sends first says whether it offers its pipes. */
  #connected(socket: Socket): void {
    socket.on("error", () => undefined);
    socket.once("data", (first: Buffer) => {
      const pipes = takeOver(socket, first);
      if (typeof pipes === "object") this.#attach(socket, pipes)(none);
      else this.#attach(socket, { input: socket, output: socket })(pipes === "none" ? first : none);
      // Also where nothing more is to come: its end is noticed by reading.
      socket.resume();
    });
  }

  /** @returns what takes bytes that have arrived already. */
  #attach(socket: Socket, { input, output }: TakenPipes): (bytes: Uint8Array) => void {
    const reader = this.#format.newReader();
    const attachment: Attachment<Written> = { socket, sink: this.#wire.newSink(output) };
    for (const pipe of new Set([input, output])) {
      pipe.on("error", () => undefined);
      // The attachment ends with its pipes, and they with it.
      pipe.once("close", () => socket.destroy());
    }
    socket.once("close", () => {
      input.destroy();
      output.destroy();
      if (this.#current !== attachment) return;
      this.#current = undefined;
      this.#format.transport.detach(attachment.sink);
    });
    const receive = (bytes: Uint8Array) => {
      try {
        for (const event of reader.push(bytes)) this.#read(attachment, event);
        if (this.#current === attachment) this.#daemon.recordActivity();
      } catch (error) {
        socket.destroy();
        // A missing frame is sent again over the next pipe; any other error is fatal.
        if (!(error instanceof FrameMissing)) throw error;
      }
    };
    input.on("data", receive);
    return receive;
  }

  #read(attachment: Attachment<Written>, event: PipeEvent): void {
    if (event.kind === "noise") return;
    if (event.kind === "signal" && event.signal[0] === "hello") {
      this.#greeted(attachment, event.signal);
      return;
    }
    if (attachment !== this.#current) return;
    if (event.kind === "content") event.accept();
    else if (event.signal[0] === "ack") this.#format.transport.acknowledged(event.signal[1]);
    else if (event.signal[0] === "ping") attachment.sink.write(this.#format.signal(["pong"]));
  }

  #greeted(attachment: Attachment<Written>, [, version, key, attempt, received, fence = 0]: Hello): void {
    this.#key ??= key;
    this.#fence ??= fence;
    if (version === protocolVersion && key === this.#key && fence < this.#fence) {
      this.#refuse(attachment);
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
      if (older !== undefined) this.#refuse(older);
      this.#format.renew();
      this.#changing = this.#daemon.changeOwner(this.#format.transport);
    } else older?.socket.destroy();
    void this.#welcome(attachment, attempt, received);
  }

  /** First ends what an earlier owner had begun: after the greeting, none of its requests is in progress. */
  async #welcome(attachment: Attachment<Written>, attempt: number, received: number): Promise<void> {
    await this.#changing;
    if (this.#current !== attachment) return;
    const { sink } = attachment;
    const { transport } = this.#format;
    sink.write(this.#format.signal(["hello", protocolVersion, this.#epoch, attempt, transport.received]));
    transport.attach(sink, received);
  }

  /** Its owner no longer owns the sandbox. */
  #refuse({ sink }: Attachment<Written>): void {
    sink.write(this.#format.signal(["fenced"]));
    sink.end();
  }
}
