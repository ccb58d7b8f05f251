import { constants } from "node:fs";
import { lstat, open, readlink } from "node:fs/promises";
import { inFolder, type OpenFolder, openFolder } from "@ambit/backend-kit/safe-fs";
import { codeOf } from "@ambit/core/plugin";
import type { LocalEntry } from "@ambit/workspace";

/**
 * Opens the folder of a path below the user's folder, without following a link on the way, and without changing the mode of one
 * that can't be read.
 * @throws Error with the code of what is in the way
 */
export async function openParent(folder: string, names: readonly string[]): Promise<OpenFolder> {
  let opened = await openFolder(folder);
  for (const name of names) {
    const above = opened;
    try {
      opened = await openFolder(inFolder(above, name));
    } finally {
      await above.handle.close();
    }
  }
  return opened;
}

/** A file or link below the user's folder, as it comes into a workspace. Undefined: it is gone, or something else. */
export async function localEntry(folder: string, path: string): Promise<LocalEntry | undefined> {
  return await inParent(folder, path, async (parent, name) => {
    const place = inFolder(parent, name);
    const stats = await lstat(place);
    if (stats.isSymbolicLink()) return { kind: "link", path, target: await readlink(place) };
    if (!stats.isFile()) return undefined;
    return {
      kind: "file",
      path,
      mode: stats.mode,
      mtime: stats.mtimeMs,
      content: () => contentOf(folder, path),
    };
  });
}

async function contentOf(folder: string, path: string): Promise<AsyncIterable<Uint8Array> | undefined> {
  return await inParent(folder, path, async (parent, name) => {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const handle = await open(inFolder(parent, name), flags);
    if ((await handle.stat()).isFile()) return handle.createReadStream({ highWaterMark: 262_144 });
    await handle.close();
    return undefined;
  });
}

async function inParent<Result>(
  folder: string,
  path: string,
  use: (parent: OpenFolder, name: string) => Promise<Result | undefined>,
): Promise<Result | undefined> {
  const names = path.split("/");
  const name = names.pop() ?? "";
  let parent: OpenFolder | undefined;
  try {
    parent = await openParent(folder, names);
    return await use(parent, name);
  } catch (error) {
    const code = codeOf(error) ?? "";
    // It changed meanwhile: gone, or a link on the way.
    if (["ENOENT", "ELOOP", "ENOTDIR"].includes(code)) return undefined;
    throw error;
  } finally {
    await parent?.handle.close();
  }
}
