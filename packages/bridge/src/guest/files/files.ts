import { spawn } from "node:child_process";
import { chmodSync, mkdirSync } from "node:fs";
import type { Writable } from "node:stream";
import { SafeSessionFiles } from "@ambit/backend-kit/safe-fs";
import { type Requests, requestOf } from "../../messages.js";
import type { Channel, ChannelListener } from "../../transport/channel.js";
import { streams } from "../../transport/frame.js";
import { replyWithFailure } from "../reply-with-failure.js";
import type { User } from "../user.js";
import type { Folders } from "./folders.js";

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
    let said = "";
    tar.stderr.on("data", (bytes: Buffer) => {
      said = (said + bytes.toString("utf8")).slice(-500);
    });
    tar.once("error", reject);
    tar.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`tar ended with ${code}: ${said.trim()}`));
    });
  });
}
