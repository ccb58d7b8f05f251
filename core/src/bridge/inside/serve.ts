import { randomUUID } from "node:crypto";
import { chmodSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import type { Channel, ChannelListener } from "../link/channel.js";
import { Channels } from "../link/channels.js";
import { readLine, signalLine } from "../link/frame.js";
import { Lines } from "../link/lines.js";
import { FrameMissing, Link } from "../link/link.js";
import { longestLine } from "../link/payload.js";
import { protocolVersion } from "../messages.js";
import { answering } from "./answering.js";
import { Files, unpack } from "./files.js";
import { type Folders, makeFolders } from "./folders.js";
import { Listeners } from "./listener.js";
import { Processes } from "./run-process.js";
import { type Settings, socketOf } from "./settings.js";
import { findUsers, type Users } from "./users.js";

/** Holds the sandbox's processes and streams, for as long as the runner comes back. */
export async function serve(settings: Settings): Promise<void> {
  // The session's group may write what a process makes in the workspace.
  process.umask(0o002);
  const users = findUsers(settings);
  const folders = makeFolders(settings, users);
  const bridge = new InsideBridge(settings, users, folders);
  await bridge.listen();
}

class InsideBridge {
  /** Another one means that this half was killed, and all it held is lost. */
  readonly #epoch = randomUUID();
  readonly #settings: Settings;
  readonly #users: Users;
  readonly #folders: Folders;
  readonly #processes: Processes;
  readonly #listeners: Listeners;
  readonly #channels: Channels;
  readonly #link: Link;
  readonly #server: Server;
  #key: string | undefined;
  #attempt = 0;
  #current: Socket | undefined;
  #lingering: NodeJS.Timeout | undefined;

  constructor(settings: Settings, users: Users, folders: Folders) {
    this.#settings = settings;
    this.#users = users;
    this.#folders = folders;
    this.#processes = new Processes(folders, users);
    this.#listeners = new Listeners(() => this.#channels);
    const files = new Files(folders, users.agent);
    const kinds: Readonly<Record<string, (channel: Channel) => ChannelListener>> = {
      run: (channel) => this.#processes.listen(channel),
      write: (channel) => files.write(channel),
      read: (channel) => files.read(channel),
      unpack,
      listen: (channel) => this.#listeners.listen(channel),
      facts: (channel) => ({ message: () => void channel.send(this.#facts()) }),
      shutdown: (channel) => ({ message: () => answering(channel, () => this.#shutdown(channel)) }),
    };
    this.#link = new Link("inside", (frame) => this.#channels.deliver(frame));
    this.#channels = new Channels(
      "inside",
      (frame) => this.#link.send(frame),
      (kind, channel) => kinds[kind]?.(channel),
    );
    this.#server = createServer((socket) => this.#connected(socket));
  }

  async listen(): Promise<void> {
    const path = socketOf(this.#settings.folder);
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(path, resolve);
    });
    chmodSync(path, 0o600);
    this.#linger();
  }

  #facts(): object {
    const { workspace, home } = this.#folders;
    const { agent, whyShared } = this.#users;
    return {
      workspace,
      home,
      searchPath: process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin",
      node: process.versions.node,
      uid: agent?.uid ?? process.getuid?.() ?? -1,
      ownUsers: agent !== undefined,
      whyShared,
    };
  }

  #connected(socket: Socket): void {
    const lines = new Lines(longestLine);
    socket.on("error", () => undefined);
    socket.once("close", () => {
      if (this.#current !== socket) return;
      this.#current = undefined;
      this.#link.detach(socket);
      this.#linger();
    });
    socket.on("data", (bytes) => {
      try {
        for (const line of lines.push(bytes)) this.#read(socket, line);
      } catch (error) {
        socket.destroy();
        // A missing frame comes again over the next pipe; anything else can't be mended.
        if (!(error instanceof FrameMissing)) throw error;
      }
    });
  }

  #read(socket: Socket, text: string): void {
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
      this.#current = socket;
      older?.destroy();
      clearTimeout(this.#lingering);
      socket.write(
        signalLine("inside", ["hello", protocolVersion, this.#epoch, attempt, this.#link.received]),
      );
      this.#link.attach(socket, received);
      return;
    }
    if (socket !== this.#current) return;
    if (line.kind === "frame") this.#link.accept(line, text.length);
    else if (line.signal[0] === "ack") this.#link.acknowledged(line.signal[1]);
    else if (line.signal[0] === "ping") socket.write(signalLine("inside", ["pong"]));
  }

  #linger(): void {
    clearTimeout(this.#lingering);
    this.#lingering = setTimeout(() => void this.#end(), this.#settings.lingerMs);
  }

  async #shutdown(channel: Channel): Promise<void> {
    await this.#clear();
    await channel.send({ done: true });
    // The answer needs a moment to get through the pipe; without it the runner has its own limit.
    setTimeout(() => process.exit(), 200);
  }

  async #end(): Promise<void> {
    await this.#clear();
    process.exit();
  }

  async #clear(): Promise<void> {
    this.#listeners.close();
    await this.#processes.endAll();
    await rm(this.#settings.folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
