import { constants } from "node:fs";
import { chmod, type FileHandle, mkdir, open, opendir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";

/** An open folder, so that renaming it meanwhile can't redirect us to another one. */
export interface OpenFolder {
  readonly handle: FileHandle;
  /** For hosts without `/proc`. Not for messages: it reveals the host's layout. */
  readonly path: string;
  /** For messages: the path as processes see it, or relative to the root. */
  readonly shown: string;
}

/** A folder's path in the sandbox, and its path for the process that reads and writes it. */
export interface PathMapping {
  readonly guest: string;
  readonly host: string;
}

export interface FileOwner {
  readonly uid: number;
  readonly gid: number;
}

const asFolder = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** O_PATH, which Node doesn't define: it needs no permission, and can't read the folder. */
const asPath = 0o10000000 | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** A name in an open folder. Node has no `openat`; on Linux the descriptor's own entry in `/proc` replaces it. */
export function inFolder(folder: OpenFolder, name: string): string;
export function inFolder(folder: OpenFolder, name: string | Buffer): string | Buffer;
export function inFolder(folder: OpenFolder, name: string | Buffer): string | Buffer {
  const before = process.platform === "linux" ? `/proc/self/fd/${folder.handle.fd}/` : `${folder.path}/`;
  return typeof name === "string" ? `${before}${name}` : Buffer.concat([Buffer.from(before), name]);
}

export async function openFolder(path: string, shown = ""): Promise<OpenFolder> {
  return { handle: await open(path, asFolder), path, shown };
}

/**
 * A folder that a session owns. The session may have removed all permissions; its owner can restore them, and so can
 * we.
 */
async function openOwn(path: string | Buffer): Promise<FileHandle> {
  try {
    return await open(path, asFolder);
  } catch (error) {
    if (codeOf(error) !== "EACCES" || process.platform !== "linux") throw error;
  }
  const entry = await open(path, asPath);
  try {
    const self = `/proc/self/fd/${entry.fd}`;
    await chmod(self, ((await entry.stat()).mode & 0o7777) | 0o700);
    return await open(`${self}/.`, asFolder);
  } finally {
    await entry.close();
  }
}

/**
 * Opens the folder at `names` below `root`, one name at a time and never through a link.
 *
 * @param root with a mapping, errors name paths in the sandbox; with a folder's path, relative ones.
 * @param names as bytes if they may not be valid UTF-8.
 * @param make creates missing folders for this owner; without it they are an error.
 * @throws SandboxFailed naming the first part that is a link, a file, or missing.
 */
export async function openBeneath(
  root: string | PathMapping,
  names: readonly (string | Buffer)[],
  make?: { readonly owner: FileOwner | undefined },
): Promise<OpenFolder> {
  const { host, guest } = typeof root === "string" ? { host: root, guest: "" } : root;
  let folder: OpenFolder;
  try {
    folder = { handle: await openOwn(host), path: host, shown: guest };
  } catch (error) {
    throw refusal(guest || "the folder", error);
  }
  for (const name of names) {
    const parent = folder;
    try {
      folder = await step(parent, name, make);
    } finally {
      await parent.handle.close();
    }
  }
  return folder;
}

async function step(
  parent: OpenFolder,
  name: string | Buffer,
  make: { readonly owner: FileOwner | undefined } | undefined,
): Promise<OpenFolder> {
  const path = join(parent.path, String(name));
  const shown = join(parent.shown, String(name));
  const enter = async () => ({ handle: await openOwn(inFolder(parent, name)), path, shown });
  try {
    return await enter();
  } catch (error) {
    if (make === undefined || codeOf(error) !== "ENOENT") throw refusal(shown, error);
  }
  try {
    await mkdir(inFolder(parent, name), { mode: 0o755 });
  } catch (error) {
    // It was just created: for a second file of the same folder, or by the session itself, which then owns it.
    if (codeOf(error) === "EEXIST")
      return await enter().catch((reason: unknown) => Promise.reject(refusal(shown, reason)));
    throw refusal(shown, error);
  }
  try {
    const entered = await enter();
    if (make.owner !== undefined) await entered.handle.chown(make.owner.uid, make.owner.gid);
    return entered;
  } catch (error) {
    throw refusal(shown, error);
  }
}

/** Splits a path in the sandbox into the names below `folder`; undefined when it doesn't lie strictly below it. */
export function namesBelow(folder: string, path: string): readonly string[] | undefined {
  if (path.includes("\0") || !path.startsWith(`${folder}/`)) return undefined;
  const names = path
    .slice(folder.length + 1)
    .split("/")
    .filter((name) => name !== "" && name !== ".");
  return names.length === 0 || names.includes("..") ? undefined : names;
}

/**
 * Errors that names, links and modes in a session's files cause, which come from its agent or its request, not from the
 * host.
 */
const codesOfSession: ReadonlySet<string | undefined> = new Set([
  "EACCES",
  "EEXIST",
  "EISDIR",
  "ELOOP",
  "ENAMETOOLONG",
  "ENOENT",
  "ENOTDIR",
  "ENOTEMPTY",
  "ENXIO",
  "EPERM",
  "EDQUOT",
  "EFBIG",
  "EINVAL",
  "EMLINK",
]);

/** Whether a session's own files caused an error, or the host did. */
function concernsOf(error: unknown): "host" | "session" {
  return codesOfSession.has(codeOf(error)) ? "session" : "host";
}

export function refusal(path: string, error: unknown): SandboxFailed {
  const code = codeOf(error);
  const isLink = code === "ELOOP" || code === "ENOTDIR";
  const why = isLink ? "there is a link or a file in the path" : (code ?? String(error));
  return new SandboxFailed(`${path} can't be reached without following links: ${why}`, {
    cause: error,
    concerns: concernsOf(error),
  });
}

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
        const stats = await handle.stat();
        if (!stats.isFile()) throw sessionFailure(`${path} isn't a regular file`);
        const content = await readWithin(handle, stats.size);
        if (content === undefined) throw sessionFailure(`${path} is larger than ${maxReadBytes} bytes`);
        return content;
      } finally {
        await handle.close();
      }
    } finally {
      await folder.handle.close();
    }
  }

  async list(): Promise<readonly string[]> {
    const paths: string[] = [];
    for (const root of this.#mappings) {
      const folders: string[][] = [[]];
      for (let names = folders.pop(); names !== undefined; names = folders.pop()) {
        if (paths.length === maxListed) return paths;
        const folder = await openBeneath(root, names).catch((error: unknown) => {
          // Its owner has just removed or replaced it.
          if (names?.length === 0) throw error;
          return undefined;
        });
        if (folder !== undefined) await listInto(folder, names, paths, folders);
      }
    }
    return paths;
  }

  #locate(path: string): { root: PathMapping; folders: readonly string[]; name: string } {
    for (const root of this.#mappings) {
      const names = namesBelow(root.guest, path);
      const name = names?.at(-1);
      if (names !== undefined && name !== undefined) return { root, folders: names.slice(0, -1), name };
    }
    const where = this.#mappings.map(({ guest }) => guest).join(" or ");
    throw sessionFailure(`${JSON.stringify(path)} isn't in ${where}`);
  }
}

/** Adds the paths of what is in a folder, and the names of its folders. */
async function listInto(
  folder: OpenFolder,
  names: readonly string[],
  paths: string[],
  folders: string[][],
): Promise<void> {
  try {
    for await (const entry of await opendir(inFolder(folder, "."))) {
      if (paths.length === maxListed) return;
      paths.push(`${folder.shown}/${entry.name}`);
      if (entry.isDirectory()) folders.push([...names, entry.name]);
    }
  } finally {
    await folder.handle.close();
  }
}

/**
 * The file's content; undefined if there is more than {@link maxReadBytes}. The owner of the file may write to it
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

function sessionFailure(message: string): SandboxFailed {
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
