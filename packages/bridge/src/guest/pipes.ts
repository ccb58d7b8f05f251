import { spawn } from "node:child_process";
import { chmodSync, closeSync, constants, fstatSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { connect, createServer, type Server, Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import {
  type DaemonSettings,
  pipeOfFirstCommand,
  protocolVersion,
  randomText,
  socketOf,
} from "../messages.js";
import { ByteFormat, preamble, signalRecord } from "../transport/byte-format.js";
import {
  FrameMissing,
  LineFormat,
  type PipeEvent,
  type PipeFormat,
  type PipeSignal,
  type PipeSink,
  signalLine,
} from "../transport/transport.js";
import { Daemon } from "./daemon.js";

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

/** Where the guest daemon writes to a pipe. */
interface GuestSink<Written> extends PipeSink<Written> {
  /** After everything that was written. */
  end(): void;
}

/** Collects the lines of one turn of the event loop: a write to the kernel costs more than a line. */
class LineSink implements GuestSink<string> {
  readonly #socket: Socket;
  #lines: string[] = [];

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  write(lines: string): void {
    if (this.#lines.push(lines) === 1) setImmediate(() => this.#flush());
  }

  end(): void {
    this.#flush();
    this.#socket.end();
  }

  #flush(): void {
    const all = this.#lines.join("");
    this.#lines = [];
    if (all !== "" && !this.#socket.destroyed) this.#socket.write(Buffer.from(all, "utf8"));
  }
}

/** The same for bytes, after the preamble. */
class ByteSink implements GuestSink<Uint8Array> {
  readonly #socket: Socket;
  #pieces: Uint8Array[] = [preamble];

  constructor(socket: Socket) {
    this.#socket = socket;
    setImmediate(() => this.#flush());
  }

  write(bytes: Uint8Array): void {
    if (this.#pieces.push(bytes) === 1) setImmediate(() => this.#flush());
  }

  end(): void {
    this.#flush();
    this.#socket.end();
  }

  #flush(): void {
    const pieces = this.#pieces;
    this.#pieces = [];
    if (this.#socket.destroyed) return;
    this.#socket.cork();
    for (const bytes of pieces) this.#socket.write(bytes);
    this.#socket.uncork();
  }
}

/** First bytes of an attachment that offers its pipes. What a runner sends never begins like that. */
const mark = "ambit pipes ";
/** What the daemon answers. Neither begins its own bytes. */
const [taken, refused] = [1, 2] as const;

/** Standard input and output of an attachment, as the daemon reads and writes them. */
interface TakenPipes {
  readonly input: Socket;
  readonly output: Socket;
}

/**
 * Offers the daemon this process's standard input and output, so that no byte passes through this process. It must live as
 * long as they are used: the platform takes its end for the command's.
 *
 * @returns whether the daemon has taken them; if not, everything is to be passed on.
 */
export async function handOver(socket: Socket): Promise<boolean> {
  // Sockets and terminals can't be opened a second time.
  if (![0, 1].every((fd) => fstatSync(fd).isFIFO())) return false;
  socket.write(`${mark}${process.pid} ${identityOf(0)} ${identityOf(1)}\n`);
  const answer = await new Promise<Buffer | undefined>((resolve) => {
    socket.once("data", (bytes: Buffer) => {
      socket.pause();
      resolve(bytes);
    });
    socket.once("close", () => resolve(undefined));
  });
  if (answer?.[0] === taken) return true;
  const content = answer?.subarray(answer[0] === refused ? 1 : 0);
  if (content !== undefined && content.length > 0) socket.unshift(content);
  return false;
}

/**
 * Takes the pipes of an attachment, and answers it.
 *
 * @param first bytes that came from it.
 * @returns "none" if it offers none; undefined if they can't be taken, and it passes on what they carry.
 */
export function takeOver(socket: Socket, first: Buffer): TakenPipes | "none" | undefined {
  if (!first.toString("latin1", 0, mark.length).startsWith(mark)) return "none";
  const [pid = "", input = "", output = ""] = first.toString("latin1", mark.length).trim().split(" ");
  const pipes = /^\d+$/.test(pid) ? open(pid, input, output) : undefined;
  socket.write(Buffer.of(pipes === undefined ? refused : taken));
  return pipes;
}

/** A pipe that this process was started with. */
interface OwnPipes extends TakenPipes {
  /** As long as it is open, the command at the pipe's end lives. */
  readonly command: Socket;
}

/** Takes this process's own standard input and output, as if an attachment had offered them. */
export function ownPipes(): OwnPipes {
  const pipes = open("self", identityOf(0), identityOf(1));
  if (pipes === undefined) throw new Error("the pipes of the guest daemon can't be opened");
  // Closed, so that their ends are noticed; and no later file gets these numbers.
  for (const fd of [0, 1]) {
    closeSync(fd);
    openSync("/dev/null", constants.O_RDWR);
  }
  return { ...pipes, command: new Socket({ fd: pipeOfFirstCommand, readable: false, writable: true }) };
}

function open(pid: string, input: string, output: string): TakenPipes | undefined {
  const opened: number[] = [];
  try {
    for (const [fd, mode, identity] of [
      [0, constants.O_RDONLY, input],
      [1, constants.O_WRONLY, output],
    ] as const) {
      const descriptor = openSync(`/proc/${pid}/fd/${fd}`, mode | constants.O_NONBLOCK);
      opened.push(descriptor);
      // Another process may have the number, in another namespace or by now.
      if (identityOf(descriptor) !== identity) throw new Error("another process's pipe");
    }
    const [reading, writing] = opened;
    return {
      input: new Socket({ fd: reading, readable: true, writable: false }),
      output: new Socket({ fd: writing, readable: false, writable: true }),
    };
  } catch {
    // A kernel or runtime that doesn't allow it, or an end that is closed already: the attachment passes the bytes on.
    for (const fd of opened) closeSync(fd);
    return undefined;
  }
}

function identityOf(fd: number): string {
  const { dev, ino } = fstatSync(fd, { bigint: true });
  return `${dev}:${ino}`;
}

/** Milliseconds for the bridge to start. */
const startMs = 10_000;

/** Connects standard input and output to the bridge, which the first attachment starts. */
export async function attach(settings: DaemonSettings, isBinary: boolean): Promise<void> {
  const socket = await reach(settings, isBinary ? "serve-bytes" : "serve");
  if (socket === undefined) {
    if (isBinary) process.stdout.write(Buffer.concat([preamble, signalRecord(["dead"])]));
    else process.stdout.write(signalLine("inside", ["dead"]));
    return;
  }
  socket.on("error", () => undefined);
  // Lines may lead to a daemon of an earlier version, which wouldn't answer.
  if (isBinary && (await handOver(socket))) {
    socket.once("close", () => process.exit());
    socket.resume();
    return;
  }
  if (socket.destroyed) return;
  // Not `process.stdout`, whose writes to a pipe are synchronous and block everything else.
  const stdout = new Socket({ fd: 1, readable: false, writable: true });
  process.stdin.pipe(socket);
  socket.pipe(stdout);
  // A platform may hold our standard input open forever, so this process ends when either side closes.
  socket.once("close", () => stdout.end(() => process.exit()));
  stdout.once("error", () => process.exit());
}

/** Undefined: there was a bridge, and it is dead. */
async function reach(settings: DaemonSettings, mode: "serve" | "serve-bytes"): Promise<Socket | undefined> {
  const path = socketOf(settings.folder);
  let first = await tryConnect(path);
  if (first.code === "ECONNREFUSED") {
    // Includes one that is just being created.
    await after(100);
    first = await tryConnect(path);
  }
  if (first.socket !== undefined) return first.socket;
  if (first.code === "ECONNREFUSED") return undefined;
  const log = start(settings, mode);
  const until = Date.now() + startMs;
  while (Date.now() < until) {
    const { socket } = await tryConnect(path);
    if (socket !== undefined) return socket;
    if (failureIn(log) !== undefined) break;
    await after(5);
  }
  const said = readFileSync(log, "utf8").trim().slice(-500);
  throw new Error(`The guest daemon didn't start: ${failureIn(log) ?? said}`);
}

/** The error that ended it. */
function failureIn(log: string): string | undefined {
  return /^\w*Error: (.*)$/m.exec(readFileSync(log, "utf8"))?.[1];
}

function start({ folder }: DaemonSettings, mode: "serve" | "serve-bytes"): string {
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const log = join(folder, "bridge.log");
  const errors = openSync(log, "w", 0o600);
  const [program = "", , ...settings] = process.argv.slice(1);
  // Through a shell that exits at once, so that it has no parent: a platform that ends a pipe also ends all descendants
  // of its command, whatever their session.
  const argv = ["-c", '"$@" &', "sh", process.execPath, ...process.execArgv, program, mode, ...settings];
  spawn("/bin/sh", argv, {
    detached: true,
    cwd: "/",
    stdio: ["ignore", "ignore", errors],
  }).unref();
  closeSync(errors);
  return log;
}

function tryConnect(path: string): Promise<{ socket?: Socket; code?: string | undefined }> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => resolve({ socket }));
    socket.once("error", (error: NodeJS.ErrnoException) => resolve({ code: error.code }));
  });
}
