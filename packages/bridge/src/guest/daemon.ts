import { readlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { DaemonSettings } from "../messages.js";
import { type Channel, type ChannelListener, Channels, replyWithFailure } from "../transport/channels.js";
import type { Transport } from "../transport/transport.js";
import { enter, Listeners } from "./connections.js";
import { Files, type Folders, makeFolders, unpack } from "./files.js";
import { Processes } from "./processes.js";
import { type Closure, closeSupervisor } from "./supervisor.js";
import { findUsers, type Users } from "./users.js";

/** Holds the sandbox's processes and streams, over any transport. */
export class Daemon {
  channels: Channels;
  readonly #settings: DaemonSettings;
  readonly #users: Users;
  readonly #closure: Closure;
  readonly #processes: Processes;
  readonly #files: Files;
  #listeners: Listeners;
  /**
   * Reset by everything that the runner sends. An open pipe alone proves nothing: a platform may hold it open forever.
   */
  readonly #lingering: NodeJS.Timeout;

  private constructor(
    settings: DaemonSettings,
    users: Users,
    folders: Folders,
    closure: Closure,
    transport: Transport,
  ) {
    this.#settings = settings;
    this.#users = users;
    this.#closure = closure;
    this.#processes = new Processes(settings, folders, users);
    this.#listeners = new Listeners(() => this.channels);
    this.#files = new Files(folders, users.agent);
    this.channels = this.#channelsOver(transport);
    this.#lingering = setTimeout(() => this.#abandoned(), settings.orphanTimeoutMs);
  }

  #channelsOver(transport: Transport): Channels {
    const kinds = new Map<string, (channel: Channel) => ChannelListener>([
      ["run", (channel) => this.#processes.listen(channel)],
      ["write", (channel) => this.#files.write(channel)],
      ["read", (channel) => this.#files.read(channel)],
      ["unpack", unpack],
      ["listen", (channel) => this.#listeners.listen(channel)],
      ["enter", enter],
      [
        "facts",
        (channel) => ({
          message: () => replyWithFailure(channel, async () => channel.send(await this.#facts())),
        }),
      ],
      [
        "contents",
        (channel) => ({
          message: () => replyWithFailure(channel, async () => channel.send(await this.#contents())),
        }),
      ],
      [
        "shutdown",
        (channel) => ({ message: () => replyWithFailure(channel, () => this.#shutdown(channel)) }),
      ],
    ]);
    return new Channels("inside", transport, (kind, channel) => kinds.get(kind)?.(channel));
  }

  /** @throws Error where it would find and end the wrong processes. */
  static start(settings: DaemonSettings, transport: Transport): Daemon {
    // Processes are found and ended through it: with the pids of another namespace, those would be the wrong ones.
    if (readlinkSync("/proc/self") !== `${process.pid}`)
      throw new Error(
        "/proc isn't that of the bridge's own process namespace: the pipe's command must enter both",
      );
    // The session's group may write what a process creates in the workspace; no other user can read what it creates.
    process.umask(0o007);
    const users = findUsers(settings);
    const folders = makeFolders(settings, users);
    const closure = closeSupervisor(settings.supervisor, users.agent);
    return new Daemon(settings, users, folders, closure, transport);
  }

  /** The runner has sent something. */
  recordActivity(): void {
    this.#lingering.refresh();
  }

  /**
   * Another runner takes over the sandbox: what the earlier one had begun ends, and its files stay.
   * Settles when none of it is in progress.
   */
  async changeOwner(transport: Transport): Promise<void> {
    this.channels.closeAll();
    this.#listeners.close();
    this.#listeners = new Listeners(() => this.channels);
    this.channels = this.#channelsOver(transport);
    await this.#files.settled();
    await this.#processes.endAll();
    this.#processes.allow();
  }

  #abandoned(): void {
    if (!this.#settings.resumable) this.end();
    else void this.#processes.endAll().then(() => this.#processes.allow());
  }

  /** Ends every process, and this one. */
  end(): void {
    // What can't be removed stays; the bridge still ends.
    void this.#clear().finally(() => process.exit());
  }

  async #facts(): Promise<object> {
    const { agent, whyShared } = this.#users;
    const { closedBy, whyOpen } = this.#closure;
    return {
      searchPath: process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin",
      node: process.versions.node,
      uid: agent?.uid ?? process.getuid?.() ?? -1,
      ownUsers: agent !== undefined && whyShared === undefined,
      whyShared,
      openPorts: await this.#closure.openPorts(),
      closedBy,
      whyOpen,
    };
  }

  async #contents(): Promise<object> {
    return { files: await this.#files.list(), processes: this.#processes.count() };
  }

  async #shutdown(channel: Channel): Promise<void> {
    await this.#clear();
    await channel.send({ done: true });
    // The reply needs a moment to pass through the pipe. If it doesn't arrive, the runner has its own time limit.
    setTimeout(() => process.exit(), 200);
  }

  async #clear(): Promise<void> {
    this.#listeners.close();
    await this.#processes.endAll();
    // They are the platform's.
    if (this.#settings.hasFolders) return;
    await rm(this.#settings.folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
