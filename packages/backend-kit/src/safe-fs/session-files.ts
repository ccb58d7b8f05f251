import { constants } from "node:fs";
import { type FileHandle, open, opendir, rename, rm } from "node:fs/promises";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";
import {
  concernsOf,
  type FileOwner,
  inFolder,
  namesBelow,
  type OpenFolder,
  openBeneath,
  type PathMapping,
  refusal,
} from "./open-beneath.js";

/** Bytes. An endless file of an agent must not fill the reader's memory. */
export const maxReadBytes = 64 * 1024 * 1024;

/** Entries that {@link SafeSessionFiles.list} names. */
const maxListed = 1_000;

export interface SessionFile {
  readonly path: string;
  readonly content: string | Uint8Array;
  readonly executable?: boolean;
}

/** A session's files, for its backend to read and write. Paths are absolute, as processes see them. */
export interface SessionFiles {
  write(files: readonly SessionFile[]): Promise<void>;
  read(path: string): Promise<Uint8Array>;
  /** The paths of all files and folders; the first thousand, if there are more. */
  list(): Promise<readonly string[]>;
}

/** A session's files, for a process with more rights than the session: it follows no link on the way. */
export class SafeSessionFiles implements SessionFiles {
  readonly #mappings: readonly PathMapping[];
  readonly #owner: FileOwner | undefined;

  constructor(mappings: readonly PathMapping[], owner?: FileOwner) {
    this.#mappings = mappings;
    this.#owner = owner;
  }

  /** @throws SandboxFailed */
  async write(files: readonly SessionFile[]): Promise<void> {
    for (const file of files) await this.#write(file);
  }

  async #write({ path, content, executable = false }: SessionFile): Promise<void> {
    const { root, folders, name } = this.#locate(path);
    const folder = await openBeneath(root, folders, { owner: this.#owner });
    // Replaces the existing file: writing through a hard link would lead outside.
    const draft = inFolder(folder, draftName());
    try {
      const handle = await open(draft, "wx", executable ? 0o755 : 0o644);
      try {
        await handle.writeFile(content);
        if (this.#owner !== undefined) await handle.chown(this.#owner.uid, this.#owner.gid);
      } finally {
        await handle.close();
      }
      await rename(draft, inFolder(folder, name));
    } catch (error) {
      await rm(draft, { force: true });
      const why = codeOf(error) ?? (error instanceof Error ? error.name : "unknown");
      throw new SandboxFailed(`${path} can't be written: ${why}`, {
        cause: error,
        concerns: concernsOf(error),
      });
    } finally {
      await folder.handle.close();
    }
  }

  /** @throws SandboxFailed */
  async read(path: string): Promise<Uint8Array> {
    const { root, folders, name } = this.#locate(path);
    const folder = await openBeneath(root, folders);
    try {
      // Non-blocking: opening a pipe without a writer would wait forever.
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
      const handle = await open(inFolder(folder, name), flags).catch((error: unknown) => {
        throw refusal(path, error);
      });
      try {
        const found = await handle.stat();
        if (!found.isFile()) throw ofSession(`${path} isn't a regular file`);
        const content = await readWithin(handle, found.size);
        if (content === undefined) throw ofSession(`${path} is larger than ${maxReadBytes} bytes`);
        return content;
      } finally {
        await handle.close();
      }
    } finally {
      await folder.handle.close();
    }
  }

  async list(): Promise<readonly string[]> {
    const found: string[] = [];
    for (const root of this.#mappings) {
      const folders: string[][] = [[]];
      for (let names = folders.pop(); names !== undefined; names = folders.pop()) {
        if (found.length === maxListed) return found;
        const folder = await openBeneath(root, names).catch((error: unknown) => {
          // Its owner has just removed or replaced it.
          if (names?.length === 0) throw error;
          return undefined;
        });
        if (folder !== undefined) await listInto(folder, names, found, folders);
      }
    }
    return found;
  }

  #locate(path: string): { root: PathMapping; folders: readonly string[]; name: string } {
    for (const root of this.#mappings) {
      const names = namesBelow(root.guest, path);
      const name = names?.at(-1);
      if (names !== undefined && name !== undefined) return { root, folders: names.slice(0, -1), name };
    }
    const where = this.#mappings.map(({ guest }) => guest).join(" or ");
    throw ofSession(`${JSON.stringify(path)} isn't in ${where}`);
  }
}

/** Adds the paths of what is in a folder, and the names of its folders. */
async function listInto(
  folder: OpenFolder,
  names: readonly string[],
  found: string[],
  folders: string[][],
): Promise<void> {
  try {
    for await (const entry of await opendir(inFolder(folder, "."))) {
      if (found.length === maxListed) return;
      found.push(`${folder.shown}/${entry.name}`);
      if (entry.isDirectory()) folders.push([...names, entry.name]);
    }
  } finally {
    await folder.handle.close();
  }
}

/**
 * The file's content; undefined if there is more than {@link maxReadBytes}. Whoever owns the file may write to it
 * meanwhile, so its size only says how much is read at first.
 */
async function readWithin(handle: FileHandle, size: number): Promise<Uint8Array | undefined> {
  let content = Buffer.allocUnsafeSlow(Math.min(size, maxReadBytes) + 1);
  for (let length = 0; ; ) {
    const { bytesRead } = await handle.read(content, length, content.length - length);
    length += bytesRead;
    if (length > maxReadBytes) return undefined;
    if (bytesRead === 0) return new Uint8Array(content.buffer, content.byteOffset, length);
    if (length < content.length) continue;
    const larger = Buffer.allocUnsafeSlow(Math.min(2 * length, maxReadBytes) + 1);
    content.copy(larger, 0, 0, length);
    content = larger;
  }
}

function ofSession(message: string): SandboxFailed {
  return new SandboxFailed(message, { concerns: "session" });
}

let drafts = 0;
/**
 * Unlike any other of this process. It needn't be a secret: a draft is only created, never opened. To load `node:crypto` for it
 * would delay a guest daemon's start by 4 ms.
 */
function draftName(): string {
  drafts += 1;
  return `.ambit-${process.pid}-${Date.now().toString(36)}-${drafts}`;
}
