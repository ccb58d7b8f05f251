import { spawn } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Writable } from "node:stream";
import { SafeSessionFiles } from "@ambit/backend-kit/safe-fs";
import { TextEnd } from "@ambit/core/plugin";
import { type DaemonSettings, homeName, type Requests, requestOf, workspaceName } from "../messages.js";
import { type Channel, type ChannelListener, replyWithFailure } from "../transport/channels.js";
import { streams } from "../transport/transport.js";
import type { User, Users } from "./users.js";

export interface Folders {
  readonly workspace: string;
  /** Group of what the runner writes there. Undefined if processes share the bridge's user. */
  readonly workspaceOwner: User | undefined;
  readonly home: string;
  /** Each process's home and scratch. */
  readonly processes: string;
}

export function makeFolders(
  { folder, workspace: access, hasFolders }: DaemonSettings,
  { agent, whyShared }: Users,
): Folders {
  const paths = {
    workspace: join(folder, workspaceName),
    home: join(folder, homeName),
    processes: join(folder, "processes"),
  };
  if (agent === undefined && access !== "write") {
    throw new Error(`the workspace can't be kept from processes that share the bridge's user: ${whyShared}`);
  }
  if (agent !== undefined) checkParents(folder);
  for (const path of hasFolders ? [paths.processes] : Object.values(paths)) mkdirSync(path, { mode: 0o700 });
  if (hasFolders) for (const path of [paths.workspace, paths.home]) chmodSync(path, 0o700);
  if (agent === undefined) return { ...paths, workspaceOwner: undefined };
  // Files get the mode 0640: the session's group may read root's files; others may read nothing.
  const workspaceOwner = access === "write" ? agent : { uid: 0, gid: access === "read" ? agent.gid : 0 };
  chownSync(paths.workspace, workspaceOwner.uid, workspaceOwner.gid);
  chownSync(paths.home, agent.uid, agent.gid);
  // The session's group may write to the workspace, and new files there belong to the group.
  chmodSync(paths.workspace, access === "write" ? 0o2770 : access === "read" ? 0o750 : 0o700);
  chmodSync(paths.processes, 0o711);
  return { ...paths, workspaceOwner };
}

/** Who may write to a folder may rename what is in it, unless it has the sticky bit: the next pipe would run its own file. */
function checkParents(folder: string): void {
  for (let path = folder; path !== dirname(path); ) {
    path = dirname(path);
    const { mode } = statSync(path);
    if ((mode & 0o002) !== 0 && (mode & 0o1000) === 0)
      throw new Error(
        `every user may rename ${folder}, since all may write to ${path}: set bridge.folder to one below folders that only root may write to, or chmod ${path} to 755 or 1777`,
      );
  }
}

/** The channels that carry files. */
export class Files {
  readonly #home: string;
  readonly #inWorkspace: SafeSessionFiles;
  readonly #inHome: SafeSessionFiles;
  readonly #writing = new Set<Promise<void>>();

  constructor({ workspace, workspaceOwner, home }: Folders, owner: User | undefined) {
    this.#home = home;
    this.#inWorkspace = new SafeSessionFiles([{ guest: workspace, host: workspace }], workspaceOwner);
    this.#inHome = new SafeSessionFiles([{ guest: home, host: home }], owner);
  }

  #at(path: string): SafeSessionFiles {
    return path.startsWith(`${this.#home}/`) ? this.#inHome : this.#inWorkspace;
  }

  write(channel: Channel): ChannelListener {
    const pieces: Uint8Array[] = [];
    let request: Requests["write"] | undefined;
    return {
      message: (message) => {
        request = requestOf("write", message);
      },
      data: (_lane, bytes, taken) => {
        pieces.push(bytes);
        taken();
      },
      end: () =>
        replyWithFailure(channel, async () => {
          if (request === undefined) throw new Error("a file without a path");
          const writing = this.#at(request.path).write([{ ...request, content: Buffer.concat(pieces) }]);
          this.#writing.add(writing);
          await writing.finally(() => this.#writing.delete(writing));
          await channel.send({ done: true });
        }),
    };
  }

  /** Paths of what is in the workspace and the home. */
  async list(): Promise<readonly string[]> {
    return [...(await this.#inWorkspace.list()), ...(await this.#inHome.list())];
  }

  /** Resolves when no file is being written. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#writing);
  }

  read(channel: Channel): ChannelListener {
    return {
      message: (message) =>
        replyWithFailure(channel, async () => {
          const { path } = requestOf("read", message);
          await channel.write(streams.main, await this.#at(path).read(path));
          await channel.send({ done: true });
        }),
    };
  }
}

/** Unpacks the uploaded archive. */
export function unpack(channel: Channel): ChannelListener {
  let input: Writable | undefined;
  return {
    message: (message) =>
      replyWithFailure(channel, async () => {
        const { archive, into } = requestOf("unpack", message);
        mkdirSync(into, { recursive: true });
        chmodSync(into, 0o755);
        await untar(archive ?? "-", into, (stdin) => {
          if (archive === undefined) input = stdin;
          else stdin.end();
        });
        await channel.send({ done: true });
      }),
    data: (_lane, bytes, taken) => input?.write(bytes, () => taken()),
    end: () => input?.end(),
    // Without its end, the archive isn't complete.
    closed: () => input?.destroy(),
  };
}

function untar(archive: string, into: string, onStarted: (stdin: Writable) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    // Every user must be able to run them, so the folders in between are opened too, despite the bridge's umask.
    const argv = ["-c", 'umask 022 && exec tar "$@"', "tar", "--no-same-owner", "-xzf", archive, "-C", into];
    const tar = spawn("/bin/sh", argv, { stdio: ["pipe", "ignore", "pipe"] });
    // Its exit code says why it doesn't read the rest.
    tar.stdin.on("error", () => undefined);
    onStarted(tar.stdin);
    const said = new TextEnd(500);
    tar.stderr.on("data", (bytes: Buffer) => said.push(bytes));
    tar.once("error", reject);
    tar.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`tar ended with ${code}: ${said.text.trim()}`));
    });
  });
}
