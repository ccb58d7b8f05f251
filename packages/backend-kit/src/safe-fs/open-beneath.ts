import { constants } from "node:fs";
import { chmod, type FileHandle, mkdir, open } from "node:fs/promises";
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

/** A name in an open folder. Node has no `openat`; on Linux the descriptor's own entry in `/proc` stands in for it. */
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
    const made = await enter();
    if (make.owner !== undefined) await made.handle.chown(make.owner.uid, make.owner.gid);
    return made;
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
const ofSession: ReadonlySet<string | undefined> = new Set([
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
export function concernsOf(error: unknown): "host" | "session" {
  return ofSession.has(codeOf(error)) ? "session" : "host";
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
