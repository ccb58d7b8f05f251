import { randomUUID } from "node:crypto";
import { chmodSync, readlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { protocolVersion } from "../messages.js";
import type { Channel, ChannelListener } from "../transport/channel.js";
import { Channels } from "../transport/channels.js";
import { readLine, signalLine } from "../transport/frame.js";
import { Lines } from "../transport/lines.js";
import { longestLine } from "../transport/payload.js";
import { FrameMissing, ReliableTransport } from "../transport/reliable-transport.js";
import { answering } from "./answering.js";
import { Files, unpack } from "./files.js";
import { type Folders, makeFolders } from "./folders.js";
import { Listeners } from "./listener.js";
import { Processes } from "./run-process.js";
import { type Settings, socketOf } from "./settings.js";
import { SocketSink } from "./socket-sink.js";
import { type Closure, closeSupervisor } from "./supervisor.js";
import { findUsers, type Users } from "./users.js";

/** The runner's connection at the moment. */
interface Attachment {
  readonly socket: Socket;
  readonly sink: SocketSink;
}

/** Holds the sandbox's processes and streams, for as long as the runner comes back. */
export async function serve(settings: Settings): Promise<void> {
  // By it processes are found and ended: with another's numbers the wrong ones would be.
  if (readlinkSync("/proc/self") !== `${process.pid}`)
    throw new Error(
      "/proc isn't that of the bridge's own process namespace: the pipe's command must enter both",
    );
  // The session's group may write what a process makes in the workspace, and nobody else reads what it makes anywhere.
  process.umask(0o007);
  const users = findUsers(settings);
  const folders = makeFolders(settings, users);
  const closure = closeSupervisor(settings.supervisor, users.agent);
  const bridge = new InsideBridge(settings, users, folders, closure);
  await bridge.listen();
}

class InsideBridge {
  /** Another one means that this daemon was killed, and all it held is lost. */
  readonly #epoch = randomUUID();
  readonly #settings: Settings;
  readonly #users: Users;
  readonly #closure: Closure;
  readonly #processes: Processes;
  readonly #listeners: Listeners;
  readonly #channels: Channels;
  readonly #transport: ReliableTransport;
  readonly #server: Server;
  #key: string | undefined;
  #attempt = 0;
  #current: Attachment | undefined;
  /** Put off by whatever the runner says. A pipe that is merely open shows nothing: a platform may hold it for ever. */
  readonly #lingering: NodeJS.Timeout;

  constructor(settings: Settings, users: Users, folders: Folders, closure: Closure) {
    this.#settings = settings;
    this.#users = users;
    this.#closure = closure;
    this.#processes = new Processes(settings, folders, users);
    this.#listeners = new Listeners(() => this.#channels);
    const files = new Files(folders, users.agent);
    const kinds = new Map<string, (channel: Channel) => ChannelListener>([
      ["run", (channel) => this.#processes.listen(channel)],
      ["write", (channel) => files.write(channel)],
      ["read", (channel) => files.read(channel)],
      ["unpack", unpack],
      ["listen", (channel) => this.#listeners.listen(channel)],
      [
        "facts",
        (channel) => ({ message: () => answering(channel, async () => channel.send(await this.#facts())) }),
      ],
      ["shutdown", (channel) => ({ message: () => answering(channel, () => this.#shutdown(channel)) })],
    ]);
    this.#transport = new ReliableTransport("inside", (frame) => this.#channels.deliver(frame));
    this.#channels = new Channels("inside", this.#transport, (kind, channel) => kinds.get(kind)?.(channel));
    this.#server = createServer((socket) => this.#connected(socket));
    this.#lingering = setTimeout(() => this.#end(), settings.orphanTimeoutMs);
  }

  async listen(): Promise<void> {
    const path = socketOf(this.#settings.folder);
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(path, resolve);
    });
    chmodSync(path, 0o600);
  }

  async #facts(): Promise<object> {
    const { agent, whyShared } = this.#users;
    const { closedBy, whyOpen } = this.#closure;
    return {
      searchPath: process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin",
      node: process.versions.node,
      uid: agent?.uid ?? process.getuid?.() ?? -1,
      ownUsers: agent !== undefined,
      whyShared,
      openPorts: await this.#closure.openPorts(),
      closedBy,
      whyOpen,
    };
  }

  #connected(socket: Socket): void {
    const lines = new Lines(longestLine);
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
        if (this.#current === attachment) this.#lingering.refresh();
      } catch (error) {
        socket.destroy();
        // A missing frame comes again over the next pipe; anything else can't be mended.
        if (!(error instanceof FrameMissing)) throw error;
      }
    });
  }

  #read(attachment: Attachment, text: string): void {
    const { socket, sink } = attachment;
    const line = readLine("runner", text);
    if (line.kind === "noise") return;
    if (line.kind === "signal" && line.signal[0] === "hello") {
      const [, version, key, attempt, received] = line.signal;
      this.#key ??= key;
      // An older pipe that was slow to arrive must not take the place of a newer one.
      if (version !== protocolVersion || key !== this.#key || attempt <= this.#attempt) {
        socket.destroy();
        return;
      }
      this.#attempt = attempt;
      const older = this.#current;
      this.#current = attachment;
      older?.socket.destroy();
      sink.write(
        signalLine("inside", ["hello", protocolVersion, this.#epoch, attempt, this.#transport.received]),
      );
      this.#transport.attach(sink, received);
      return;
    }
    if (attachment !== this.#current) return;
    if (line.kind === "frame") this.#transport.accept(line, text.length);
    else if (line.signal[0] === "ack") this.#transport.acknowledged(line.signal[1]);
    else if (line.signal[0] === "ping") sink.write(signalLine("inside", ["pong"]));
  }

  async #shutdown(channel: Channel): Promise<void> {
    await this.#clear();
    await channel.send({ done: true });
    // The answer needs a moment to get through the pipe; without it the runner has its own limit.
    setTimeout(() => process.exit(), 200);
  }

  #end(): void {
    // What can't be cleared away stays; the bridge doesn't.
    void this.#clear().finally(() => process.exit());
  }

  async #clear(): Promise<void> {
    this.#listeners.close();
    await this.#processes.endAll();
    await rm(this.#settings.folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
