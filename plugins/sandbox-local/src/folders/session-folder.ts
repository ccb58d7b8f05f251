import { chmod, chown, mkdir, realpath, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FileOwner } from "@ambit/backend-kit/safe-fs";
import { type Boundary, codeOf, SandboxFailed } from "@ambit/core/plugin";
import { diskImage, makeSessionDisk, mountSessionDisk, unmountBelow } from "./disk.js";
import type { RunnerFolder } from "./runner-folder.js";

/**
 * Checks that a folder of the user's can be a session's workspace itself.
 * @throws SandboxFailed
 */
export async function requireUsable(
  folder: string,
  dataFolder: string,
  { diskMb }: Pick<Boundary["resources"], "diskMb">,
): Promise<void> {
  const refuse = (why: string) =>
    new SandboxFailed(`${folder} can't be the workspace itself: ${why}`, { concerns: "session" });
  if (diskMb !== undefined)
    throw refuse("its size can't be limited: leave resources.diskMb out, or work on a copy");
  const uid = process.getuid?.();
  if (uid === 0)
    throw refuse(
      "as root, each session has a user of its own, who may not write your files: run Ambit as the folder's owner, or work on a copy",
    );
  const stats = await stat(folder).catch(() => undefined);
  if (stats?.isDirectory() !== true || (await realpath(folder)) !== folder)
    throw refuse("it is no folder, or there is a link in its path");
  if (stats.uid !== uid) throw refuse("it is another user's: run Ambit as its owner, or work on a copy");
  const data = await realpath(dataFolder).catch(() => dataFolder);
  if (isWithin(data, folder) || isWithin(folder, data))
    throw refuse(`it holds Ambit's own data (${data}), or is in it: name a folder below it`);
}

const isWithin = (path: string, folder: string) => `${path}/`.startsWith(folder === "/" ? "/" : `${folder}/`);

/** In a session's folder: the cgroups made for it, as a JSON list of folders. */
export const groupsRecord = "groups.json";

/** In a session's folder, where another runner may go on with its files once this one is killed. */
export const continuedMark = "continued";

/** One session's folders on the runner. */
export interface SessionFolder {
  readonly path: string;
  readonly workspace: string;
  readonly home: string;
  /** Bytes of the separate file system that both are on, if there is one. */
  readonly diskBytes: number | undefined;
  /** Removes everything. Safe to call twice; never rejects. */
  remove(): Promise<void>;
}

/**
 * @param owner the user who owns the workspace and home, if that isn't the runner's own.
 * @param diskMb MiB for the workspace and home together. Default: no limit.
 * @param from the folder of the same session of a dead runner, whose workspace and home this one takes, and their disk.
 * Default: both are empty.
 */
export async function makeSessionFolder(
  runner: Pick<RunnerFolder, "path" | "trash">,
  id: string,
  owner?: FileOwner,
  diskMb?: number,
  from?: string,
): Promise<SessionFolder> {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(id)) {
    throw new SandboxFailed(`A sandbox's id must match [A-Za-z0-9_-]{1,64}, but is ${JSON.stringify(id)}`);
  }
  const path = join(runner.path, id);
  const remove = () => runner.trash.discard(path);
  try {
    await mkdir(path);
    await chmod(path, 0o711);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    throw new SandboxFailed(`A sandbox with the id ${id} is open already: close it first`, { cause: error });
  }
  try {
    if (from !== undefined) return { ...(await takeParts(runner, from, path, diskMb !== undefined)), remove };
    const disk = diskMb === undefined ? undefined : await makeSessionDisk(path, diskMb);
    const [workspace, home] = [join(disk?.path ?? path, "workspace"), join(disk?.path ?? path, "home")];
    for (const part of [workspace, home]) {
      await mkdir(part, { mode: 0o700 });
      if (owner !== undefined) await chown(part, owner.uid, owner.gid);
    }
    return { path, workspace, home, diskBytes: disk?.bytes, remove };
  } catch (error) {
    await remove();
    if (codeOf(error) !== "EINVAL") throw error;
    throw new SandboxFailed(
      `There is no user id ${owner?.uid} in this container: set sandbox-local's userIds to a range that it maps`,
      { cause: error },
    );
  }
}

/** Marks the folder of an open session whose files another runner may go on with. */
export async function markContinued({ path }: Pick<SessionFolder, "path">): Promise<void> {
  await writeFile(join(path, continuedMark), "");
}

/** Moves the parts of a dead runner's session here. Only one of several runners gets them. */
async function takeParts(
  { trash }: Pick<RunnerFolder, "trash">,
  from: string,
  path: string,
  hasDisk: boolean,
): Promise<Omit<SessionFolder, "remove">> {
  const taken = `${path}-taken`;
  try {
    await rename(from, taken);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    throw new SandboxFailed("The session's files aren't there any more", {
      cause: error,
      concerns: "session",
    });
  }
  try {
    if (!hasDisk) {
      const [workspace, home] = [join(path, "workspace"), join(path, "home")];
      await rename(join(taken, "workspace"), workspace);
      await rename(join(taken, "home"), home);
      return { path, workspace, home, diskBytes: undefined };
    }
    await unmountBelow(taken);
    await rename(join(taken, diskImage), join(path, diskImage));
    const disk = await mountSessionDisk(path);
    const [workspace, home] = [join(disk.path, "workspace"), join(disk.path, "home")];
    return { path, workspace, home, diskBytes: disk.bytes };
  } finally {
    await trash.discard(taken);
  }
}
