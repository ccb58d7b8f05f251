import { chmod, chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { FileOwner } from "@ambit/backend-kit/safe-fs";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";
import { makeSessionDisk } from "./disk.js";
import type { RunnerFolder } from "./runner-folder.js";

/** In a session's folder: the cgroups made for it, as a JSON list of folders. */
export const groupsRecord = "groups.json";

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
 */
export async function makeSessionFolder(
  runner: Pick<RunnerFolder, "path" | "trash">,
  id: string,
  owner?: FileOwner,
  diskMb?: number,
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
