/** The data folder of a host: a part for each runner with its sessions, the trash, and what dead runners left. */

import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readdirSync, rmSync } from "node:fs";
import {
  chmod,
  chown,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  statfs,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { atExit, isListening, listenAt } from "@ambit/backend-kit";
import { type FileOwner, type OpenFolder, openFolder } from "@ambit/backend-kit/safe-fs";
import { type Boundary, codeOf, type Log, messageOf, resultWithin, SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";
import { removeGroups } from "../cgroup/session-groups.js";
import {
  descriptorTable,
  inheritableDescriptors,
  killMarked,
  markerVariable,
  markOf,
  parseMounts,
} from "../process/host-processes.js";
import { beginRemoval } from "./remove-tree.js";

const maxTimerMs = 2_147_483_647;

/**
 * Cleans up what dead runners left in the data folder, and creates this runner's folder in it.
 * Its leftovers are removed as soon as it is killed.
 *
 * @param takeoverMs how long files of a dead runner's named sessions wait for one that goes on with them.
 * @throws SandboxFailed when the folder can't be used.
 */
export async function openRunner(dataFolder: string, takeoverMs: number): Promise<RunnerFolder> {
  try {
    const runner = await claimRunnerFolder(dataFolder);
    await watchOver(runner.key, runner.path);
    // Before this start adds to it.
    await runner.trash.retry();
    await reapUntilEmpty(dataFolder, runner.trash, takeoverMs);
    return runner;
  } catch (error) {
    if (error instanceof SandboxFailed) throw error;
    const why = codeOf(error) ?? messageOf(error);
    throw new SandboxFailed(`the data folder ${dataFolder} can't be used (${why})`, { cause: error });
  }
}

/** Now, and again when what still waits has waited long enough. */
async function reapUntilEmpty(dataFolder: string, trash: Trash, takeoverMs: number): Promise<void> {
  const { waiting } = await reap(dataFolder, trash, takeoverMs);
  if (waiting === 0) return;
  const again = () =>
    void reapUntilEmpty(dataFolder, trash, takeoverMs).catch((error: unknown) =>
      trash.note(dataFolder, error),
    );
  setTimeout(again, Math.min(takeoverMs, maxTimerMs)).unref();
}

interface ReapedLeftovers {
  readonly runners: number;
  readonly processes: number;
  /** Sessions whose files wait for the next runner that has them. */
  readonly waiting: number;
}

/**
 * Ends and removes what dead runners left in the data folder, never what belongs to a live one. What can't be ended or
 * removed is recorded and left; it doesn't fail this start.
 *
 * @param takeoverMs how long the files of named sessions wait for a runner that goes on with them.
 */
export async function reap(dataFolder: string, trash: Trash, takeoverMs: number): Promise<ReapedLeftovers> {
  let [processes, waiting] = [0, 0];
  const dead = await deadRunners(dataFolder);
  for (const { key, path } of dead) {
    try {
      processes += await killMarked(markOf(key));
      const sessions = await sessionsIn(path);
      for (const session of sessions) await removeGroups(await recordedGroups(session));
      const continued = sessions.filter((session) => existsSync(join(session, continuedMark)));
      if (continued.length > 0 && (await deadForMs(path)) < takeoverMs) {
        waiting += continued.length;
        for (const session of sessions) if (!continued.includes(session)) await trash.discard(session, false);
      } else await trash.discard(path, false);
    } catch (error) {
      trash.note(path, error);
    }
  }
  return { runners: dead.length, processes, waiting };
}

/** Ends what is left of a dead runner's session besides its files. */
export async function endLeftover(runnerKey: string, session: string, id: string): Promise<void> {
  await killMarked(markOf(runnerKey, id));
  await removeGroups(await recordedGroups(session));
}

async function sessionsIn(path: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(path, name));
  } catch (error) {
    // Another start is reaping it at the same time.
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

/** Only the runner can write into a session's own folder, so the record can be trusted. */
async function recordedGroups(session: string): Promise<readonly string[]> {
  try {
    return z.array(z.string()).parse(JSON.parse(await readFile(join(session, groupsRecord), "utf8")));
  } catch (error) {
    // No limits, or the runner died while it wrote, before it made the first group.
    if (codeOf(error) === "ENOENT" || error instanceof SyntaxError) return [];
    throw error;
  }
}

/**
 * Waits for the end of its input, which comes when the runner ends in any way. Then kills every process that carries
 * the runner's mark, until none has been found for a while, since a process that was just being started shows up late.
 * That is shorter after a runner that removed its folder at its end: all its sessions were closed. Finally it unmounts
 * the disks in the runner's folder.
 */
const script = `
read -r _
quiet=0
rounds=0
if [ -d "$3" ]; then looks=8; else looks=2; fi
while [ $quiet -lt $looks ] && [ $rounds -lt 200 ]; do
  rounds=$((rounds + 1))
  found=$(grep -lsz -e "^$1=$2/" /proc/[0-9]*/environ /proc/[0-9]*/cmdline)
  if [ -z "$found" ]; then quiet=$((quiet + 1)); else quiet=0; fi
  for path in $found; do
    pid=\${path#/proc/}
    kill -9 "\${pid%/*}"
  done
  sleep 0.04
done
while read -r _ _ _ _ place _; do
  case $place in "$3"/*) umount -l "$place" ;; esac
done < /proc/self/mountinfo`;

/**
 * Starts the process that briefly outlives this one. Jails and unconfined processes end with the runner only from some
 * point of their start on: bubblewrap's child waits for bubblewrap, and asks to end with it afterwards.
 */
async function watchOver(runnerKey: string, folder: string): Promise<void> {
  if (process.platform !== "linux") return; // There is no /proc to search.
  const devNull = openSync("/dev/null", "r+");
  try {
    const inheritable = inheritableDescriptors();
    const child = spawn(
      "/bin/sh",
      ["-c", script, "ambit-watch", markerVariable, runnerKey, await realpath(folder)],
      {
        cwd: "/",
        env: { PATH: "/usr/bin:/bin" },
        // In a separate process group: a terminal's signals to the runner must not reach it.
        detached: true,
        stdio: [...descriptorTable(["pipe", "ignore", "ignore"] as const, inheritable, devNull)],
      },
    );
    await once(child, "spawn");
    const { stdin } = child;
    if (stdin === null) throw new SandboxFailed("The runner's monitor was started without its pipe");
    stdin.on("error", () => undefined); // If it is killed, the next start cleans up.
    child.unref();
    if ("unref" in stdin && typeof stdin.unref === "function") stdin.unref();
  } catch (error) {
    throw new SandboxFailed("The process that monitors the runner can't be started", { cause: error });
  } finally {
    closeSync(devNull);
  }
}

const lifeline = "alive";
/** Made by who first sees that the runner is dead. */
const deathMark = "dead";
/** In a session's folder: where the file system with a size is mounted. */
const diskMount = "disk";
/** In a session's folder: the file that holds it. */
const diskImage = "disk.img";
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

/** Milliseconds that a caller waits for its turn, or for what this process removes itself. */
const patienceMs = 1_000;
/** Most simultaneous removals of all sessions. */
const together = 2;
/** Most problems that are kept until they are logged. */
const maxProblems = 100;

interface Problem {
  readonly path: string;
  readonly reason: string;
}

/**
 * Where folders of ended sessions are moved at once, and then removed. What can't be removed stays here, in quarantine:
 * no session sees it, it fails no start, and the next start tries again. Only the runner's user may enter.
 */
export class Trash {
  readonly #path: string;
  readonly #waiting: (() => void)[] = [];
  readonly #problems: Problem[] = [];
  /** Removals that would end with this process. */
  readonly #begun = new Set<Promise<void>>();
  #running = 0;

  private constructor(path: string) {
    this.#path = path;
  }

  /** @throws SandboxFailed when the folder can't be made. */
  static async open(dataFolder: string): Promise<Trash> {
    const path = join(dataFolder, "trash");
    await makePassage(path, 0o700);
    return new Trash(path);
  }

  /**
   * Moves a folder here, where no session sees it, and begins to remove it. Never rejects. The removal goes on after it has
   * resolved, since an agent chose how much it is; while `together` removals run, the next caller waits for one to end.
   *
   * @param waits whether to wait a moment for that. Default true.
   */
  async discard(folder: string, waits = true): Promise<void> {
    await this.#unmount(folder);
    const turn = this.#remove(await this.#take(folder));
    // Keeps the process alive meanwhile; a removal that waits for others doesn't.
    if (waits) await resultWithin(turn, patienceMs);
  }

  /** Resolves when no removal would end with this process, or a moment has passed. */
  async close(): Promise<void> {
    await resultWithin(Promise.all(this.#begun), patienceMs);
  }

  /** Tries again to remove what is left here. Never rejects, and doesn't wait. */
  async retry(): Promise<void> {
    try {
      await this.#unmount(this.#path);
      for (const name of await readdir(this.#path)) void this.#remove(join(this.#path, name));
    } catch (error) {
      this.#note({ path: this.#path, reason: String(error) });
    }
  }

  /** Reports something else that is left behind. */
  note(path: string, error: unknown): void {
    this.#note({ path, reason: messageOf(error) });
  }

  /** Logs what couldn't be removed since the last call. */
  report(log: Log): void {
    for (const problem of this.#problems.splice(0)) {
      log.warn(
        { ...problem },
        "files of an ended session can't be removed: no other session can access them",
      );
    }
  }

  /** The folder's new path. A missing folder is fine, and one that can't be moved is removed where it is. */
  async #take(folder: string): Promise<string> {
    const place = join(this.#path, `${basename(folder)}-${randomBytes(6).toString("hex")}`);
    try {
      await rename(folder, place);
      return place;
    } catch {
      return folder;
    }
  }

  /** A mount is no part of the host's disk, and can't be removed with the folder. */
  async #unmount(folder: string): Promise<void> {
    await unmountBelow(folder).catch((error: unknown) => this.note(folder, error));
  }

  /** Resolves when it is the removal's turn. */
  async #remove(path: string): Promise<void> {
    if (this.#running >= together) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running += 1;
    const removal = beginRemoval(path);
    const begun = removal.then(() => void this.#begun.delete(begun));
    this.#begun.add(begun);
    void removal.then(async ({ ended }) => {
      const reason = await ended;
      if (reason !== undefined) this.#note({ path, reason });
      this.#running -= 1;
      this.#waiting.shift()?.();
    });
  }

  #note(problem: Problem): void {
    if (this.#problems.length < maxProblems) this.#problems.push(problem);
  }
}

const execute = promisify(execFile);
const environment = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };
/** In milliseconds. Each command takes a few. */
const commandTimeoutMs = 20_000;

/** A file system for one session. */
interface SessionDisk {
  readonly path: string;
  /** Its size as the kernel reads it back, which is less than the limit by the file system's metadata. */
  readonly bytes: number;
}

/**
 * Makes a file system of `sizeMb` MiB in a sparse file and mounts it in the session's folder. Needs root, a loop device
 * and mkfs.ext4. It occupies as much of the host's disk as is written to it; removed files free their space.
 *
 * @throws SandboxFailed when this host can't do that; nothing of it remains then.
 */
export async function makeSessionDisk(session: string, sizeMb: number): Promise<SessionDisk> {
  if (process.getuid?.() !== 0) throw refused("only root can mount a file system");
  const file = join(session, diskImage);
  try {
    const handle = await open(file, "wx", 0o600);
    await handle.truncate(sizeMb * 1024 * 1024).finally(() => handle.close());
    // No reserve for root and no journal: nothing outlives the session.
    const features = ["-m", "0", "-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=1,nodiscard"];
    await run("mkfs.ext4", ["-q", "-F", ...features, file]);
    return await mounted(session);
  } catch (error) {
    await unmountBelow(session);
    await rm(join(session, diskMount), { recursive: true, force: true });
    await rm(file, { force: true });
    throw refused(reasonOf(error), error);
  }
}

/** Mounts the file system of a dead runner's session, which may need a repair. @throws SandboxFailed */
export async function mountSessionDisk(session: string): Promise<SessionDisk> {
  try {
    // Ends with 1 where it has repaired something.
    await run("e2fsck", ["-p", join(session, diskImage)]).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === 1)) throw error;
    });
    return await mounted(session);
  } catch (error) {
    throw refused(reasonOf(error), error);
  }
}

async function mounted(session: string): Promise<SessionDisk> {
  const path = join(session, diskMount);
  await mkdir(path);
  const options = "loop,nosuid,nodev,noatime,discard";
  await run("mount", ["-t", "ext4", "-o", options, join(session, diskImage), path]);
  // Passable for the session's user, like the folder above.
  await chmod(path, 0o711);
  const { blocks, bsize } = await statfs(path);
  return { path, bytes: blocks * bsize };
}

/** Unmounts the disk of a session, or those of all sessions in a runner's folder. Rejects with what stays mounted. */
export async function unmountBelow(folder: string): Promise<void> {
  if (process.platform !== "linux") return;
  for (const path of await mountsBelow(folder)) {
    // A process that can't be killed yet may hold it: a lazy unmount detaches it now and frees it when that process
    // ends.
    await run("umount", [path]).catch(() => run("umount", ["--lazy", path]));
  }
}

async function mountsBelow(folder: string): Promise<readonly string[]> {
  let real: string;
  try {
    real = await realpath(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
  return parseMounts(await readFile("/proc/self/mountinfo", "latin1"))
    .map(({ path }) => path)
    .filter((path) => path.startsWith(`${real}/`))
    .reverse();
}

async function run(program: string, argv: readonly string[]): Promise<void> {
  await execute(program, argv, { env: environment, cwd: "/", timeout: commandTimeoutMs });
}

/** The program's own message, without the paths in it, which name the runner. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ("code" in error && error.code === "ENOENT") return `${String(Reflect.get(error, "path"))} is missing`;
  const words = "stderr" in error ? String(error.stderr) : error.message;
  return (words.trim().split("\n")[0] ?? "").replaceAll(/(?<![\w/])\/[\w./-]+/g, "…").slice(0, 200);
}

function refused(reason: string, cause?: unknown): SandboxFailed {
  return new SandboxFailed(`The disk limit can't be set (${reason})`, { cause });
}

/** Replaces Node's recursive `mkdir`, which never returns if the kernel answers ENOENT for an existing parent. */
async function makeFolders(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o711 });
  } catch (error) {
    const code = codeOf(error);
    if (code === "EEXIST") return;
    const parent = dirname(path);
    if (code !== "ENOENT" || (await isFolder(parent))) throw error;
    await makeFolders(parent);
    await mkdir(path, { mode: 0o711 });
  }
}

async function isFolder(path: string): Promise<boolean> {
  return await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

/**
 * Makes a folder that only this user can change or list. Others may pass through it, since a session's separate user id
 * has to reach its folders.
 *
 * @param mode 0o700 if others mustn't pass through either.
 * @throws SandboxFailed when another user owns it, or it is a link.
 */
export async function makePassage(path: string, mode = 0o711): Promise<void> {
  await makeFolders(path);
  const stats = await lstat(path);
  if (!stats.isDirectory() || (process.getuid !== undefined && stats.uid !== process.getuid())) {
    throw new SandboxFailed(
      `${path} isn't a folder of the runner's user: set sandbox-local's dataFolder to one that is`,
    );
  }
  await chmod(path, mode);
}

/** Writes a file that sessions' users can read, whatever the runner's umask is. */
export async function writeReadable(path: string, content: string | Uint8Array): Promise<void> {
  await writeFile(path, content);
  await chmod(path, 0o644);
}

/** Makes a folder that sessions' users can read, and its parents. */
export async function makeReadableFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first !== undefined) await chmod(first, 0o755);
  await chmod(path, 0o755);
}
