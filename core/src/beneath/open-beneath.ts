import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { SandboxFailed } from "../errors.js";

/** An open folder, so that whoever may rename it in the meantime can't make us act in another one. */
export interface OpenFolder {
  readonly handle: FileHandle;
  /** For messages, and for hosts without `/proc`. */
  readonly path: string;
}

export interface Ownership {
  readonly uid: number;
  readonly gid: number;
}

const asFolder = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** A name in an open folder. Node has no `openat`; on Linux the descriptor's own entry in `/proc` stands in for it. */
export function inFolder(folder: OpenFolder, name: string): string {
  return process.platform === "linux" ? `/proc/self/fd/${folder.handle.fd}/${name}` : join(folder.path, name);
}

export async function openFolder(path: string): Promise<OpenFolder> {
  return { handle: await open(path, asFolder), path };
}

/**
 * Opens the folder at `names` below `root`, one name at a time and never through a link.
 *
 * @param make missing folders are made, and given to this owner; without it they are an error.
 * @throws SandboxFailed naming the first part that is a link, a file, or missing.
 */
export async function openBeneath(
  root: string,
  names: readonly string[],
  make?: { readonly owner: Ownership | undefined },
): Promise<OpenFolder> {
  let folder = await openFolder(root);
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
  name: string,
  make: { readonly owner: Ownership | undefined } | undefined,
): Promise<OpenFolder> {
  const path = join(parent.path, name);
  const enter = async () => ({ handle: await open(inFolder(parent, name), asFolder), path });
  try {
    return await enter();
  } catch (error) {
    if (make === undefined || codeOf(error) !== "ENOENT") throw refusal(path, error);
  }
  try {
    await mkdir(inFolder(parent, name), { mode: 0o755 });
  } catch (error) {
    // Somebody was faster: a second file for the same folder, or the session itself, whose folder is then its own.
    if (codeOf(error) === "EEXIST")
      return await enter().catch((reason: unknown) => Promise.reject(refusal(path, reason)));
    throw refusal(path, error);
  }
  try {
    const made = await enter();
    if (make.owner !== undefined) await made.handle.chown(make.owner.uid, make.owner.gid);
    return made;
  } catch (error) {
    throw refusal(path, error);
  }
}

/** Splits a path inside into the names below `inside`; undefined when it doesn't lie strictly below it. */
export function namesBelow(inside: string, path: string): readonly string[] | undefined {
  if (path.includes("\0") || !path.startsWith(`${inside}/`)) return undefined;
  const names = path
    .slice(inside.length + 1)
    .split("/")
    .filter((name) => name !== "" && name !== ".");
  return names.length === 0 || names.includes("..") ? undefined : names;
}

export function refusal(path: string, error: unknown): SandboxFailed {
  const code = codeOf(error);
  const isLink = code === "ELOOP" || code === "ENOTDIR";
  const why = isLink ? "a link or a file stands in its way" : (code ?? String(error));
  return new SandboxFailed(`${path} can't be reached without following links: ${why}`, { cause: error });
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
