import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { chmod, chown, mkdir, readdir, realpath, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { atExit, isListening, listenAt } from "@ambit/backend-kit";
import { type FileOwner, type OpenFolder, openFolder } from "@ambit/backend-kit/safe-fs";
import { type Boundary, codeOf, SandboxFailed } from "@ambit/core/plugin";
import { makePassage } from "./data-folder.js";
import { diskImage, diskMount, makeSessionDisk, mountSessionDisk, unmountBelow } from "./disk.js";
import { Trash } from "./trash.js";

const lifeline = "alive";
/** Made by who first sees that the runner is dead. */
const deathMark = "dead";
/** Folders that each session has one of. */
const sessionMarks = ["workspace", diskMount];
const unfinished = ".new-";
const unfinishedForMs = 60_000;

/**
 * When the process ends by itself with all sessions closed. If one is open, the next start needs the folder to find its
 * processes and cgroups.
 */
function removeUnused(path: string): void {
  if (!existsSync(path)) return;
  const isOpen = readdirSync(path).some((name) =>
    sessionMarks.some((mark) => existsSync(join(path, name, mark))),
  );
  if (!isOpen) rmSync(path, { recursive: true, force: true });
}

/** This runner's own part of the data folder. */
export interface RunnerFolder {
  /** Unguessable, and unique among all runners that share the data folder. */
  readonly key: string;
  readonly path: string;
  /** Receives what is no longer needed. */
  readonly trash: Trash;
  /** Removes the folder; other runners then consider this one gone. Safe to call twice. */
  close(): Promise<void>;
}

/**
 * Makes the folder, with a lifeline in it that shows other runners whether this one lives.
 */
export async function claimRunnerFolder(dataFolder: string): Promise<RunnerFolder> {
  await makePassage(dataFolder);
  const runners = runnersIn(dataFolder);
  await makePassage(runners);
  const trash = await Trash.open(dataFolder);
  const key = randomBytes(12).toString("hex");
  const path = join(runners, key);
  // It gets its final name once it responds, so that no reaper takes it for a dead one.
  const early = join(runners, `${unfinished}${key}`);
  await mkdir(early);
  await chmod(early, 0o711);
  const folder = await openFolder(early);
  const server = await listenAt(folder, lifeline);
  await rename(early, path);
  const keep = atExit(() => removeUnused(path));
  return {
    key,
    path,
    trash,
    async close() {
      keep();
      await trash.discard(path);
      await trash.close();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await folder.handle.close();
    },
  };
}

/** Folders of runners that are gone, with the key of each. */
export async function deadRunners(dataFolder: string): Promise<readonly { key: string; path: string }[]> {
  const runners = runnersIn(dataFolder);
  const names = await readdir(runners).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  });
  const dead: { key: string; path: string }[] = [];
  for (const name of names) {
    const path = join(runners, name);
    const isUnfinished = name.startsWith(unfinished);
    if (isUnfinished ? await isOld(path) : !(await isAlive(path))) {
      dead.push({ key: isUnfinished ? name.slice(unfinished.length) : name, path });
    }
  }
  return dead;
}

/** Milliseconds since another runner first saw that this one is dead. */
export async function deadForMs(path: string): Promise<number> {
  const mark = join(path, deathMark);
  await writeFile(mark, "", { flag: "wx" }).catch((error: unknown) => {
    if (codeOf(error) !== "EEXIST") throw error;
  });
  return Date.now() - (await stat(mark)).mtimeMs;
}

/** The folder of a runner that has ended. @throws SandboxFailed while it lives */
export async function deadRunner(dataFolder: string, key: string): Promise<string> {
  const path = join(runnersIn(dataFolder), key);
  if (existsSync(path) && (await isAlive(path)))
    throw new SandboxFailed("The server that has them lives", { concerns: "session" });
  return path;
}

function runnersIn(dataFolder: string): string {
  return join(dataFolder, "runners");
}

async function isAlive(path: string): Promise<boolean> {
  let folder: OpenFolder;
  try {
    folder = await openFolder(path);
  } catch (error) {
    // Another runner removed it since it was listed: nothing to reap.
    return ["ENOENT", "EACCES"].includes(codeOf(error) ?? "") || isNoFolder(error);
  }
  try {
    return await isListening(folder, lifeline);
  } finally {
    await folder.handle.close();
  }
}

/** Something that no runner put there is not touched. */
function isNoFolder(error: unknown): boolean {
  return codeOf(error) === "ENOTDIR" || codeOf(error) === "ELOOP";
}

async function isOld(path: string): Promise<boolean> {
  try {
    return Date.now() - (await stat(path)).mtimeMs > unfinishedForMs;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

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
