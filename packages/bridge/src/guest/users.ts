import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, lstatSync, rmSync } from "node:fs";
import { lstat, readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { messageOf } from "@ambit/core/plugin";
import { type DaemonSettings, randomText, toolUsers } from "../messages.js";

export interface User {
  readonly uid: number;
  readonly gid: number;
}

/** Runs a fixed script synchronously as a user; returns whether it succeeds. `word` is its `$0`. */
function runAs(user: User, script: string, word: string): boolean {
  const { status } = spawnSync("/bin/sh", ["-c", script, word], { ...user, stdio: "ignore" });
  return status === 0;
}

/** The same for a script that prints some of these words, one a line. None, where it can't be started. */
function chosenAs(user: User, script: string, words: readonly string[]): readonly string[] {
  const argv = ["-c", script, "sh", ...words];
  const { stdout } = spawnSync("/bin/sh", argv, { ...user, stdio: ["ignore", "pipe", "ignore"] });
  const printed = stdout?.toString("utf8").split("\n") ?? [];
  return words.filter((word) => printed.includes(word));
}

/**
 * `runAs`, asynchronously. Settles when the script has ended, even if it failed.
 * @param onFailed called if no further process can be started.
 */
export function startAs(user: User, script: string, word: string, onFailed: () => void): Promise<void> {
  return new Promise((resolve) => {
    const child = spawn("/bin/sh", ["-c", script, word], { ...user, stdio: "ignore" });
    child.once("error", () => {
      onFailed();
      resolve();
    });
    child.once("close", () => resolve());
  });
}

/** World-writable folders of every image. */
const worldWritable = ["/tmp", "/var/tmp", "/dev/shm", "/run/lock"];

/**
 * Makes files that a process creates in a world-writable folder private: with the folder's set-group-id bit, a new file
 * gets the folder's group, which no process is in, and the bridge's umask grants nothing to others.
 *
 * @param mayChange whether the folders belong to the sandbox; otherwise they are only checked.
 * @returns why not, as seen by doing it: what one user writes there, another one reads.
 */
export function isolateTmp(writer: User, reader: User, mayChange: boolean): string | undefined {
  const paths: string[] = [];
  try {
    for (const folder of worldWritable.filter(isWorldWritable)) {
      try {
        if (mayChange) {
          chownSync(folder, 0, 0);
          chmodSync(folder, 0o3777);
        }
        paths.push(join(folder, `ambit-${randomText()}`));
      } catch (error) {
        // On a read-only file system nothing can be put there.
        if (error instanceof Error && "code" in error && error.code === "EROFS") continue;
        return `${folder} can't be kept apart: ${messageOf(error)}`;
      }
    }
    // A folder that can't be written needs no separation.
    const written = chosenAs(writer, `for path do echo written > "$path" && ${readable}; done`, paths);
    const [seen] = chosenAs(reader, `for path do ${readable}; done`, written);
    return seen === undefined ? undefined : `what one user writes to ${dirname(seen)}, another can read`;
  } finally {
    for (const path of paths) rmSync(path, { force: true });
  }
}

/** Prints the path of a file that can be read. By the shell alone: each further program would delay the start. */
const readable = '{ read -r line < "$path" && echo "$path"; }';

/** Message queues, which no folder's group keeps private. */
const messageQueues = "/dev/mqueue";

/** Removes what a user without processes left for others to find: files in world-writable folders, and System V IPC. */
async function removeFilesOf(user: User): Promise<void> {
  // It fails on those of other users, and where the image lacks the program.
  if (await hasIpc(user)) await startAs(user, "ipcrm --all", "ipcrm", () => undefined);
  for (const folder of [...worldWritable, messageQueues]) {
    if (!(await hasFilesOf(folder, user))) continue;
    const script = 'find "$0" -mindepth 1 -maxdepth 1 -user "$(id -u)" -exec rm -rf -- {} +';
    // If no process can be started for that, the files stay, and no other process can read them.
    await startAs(user, script, folder, () => undefined);
  }
}

/** Whether a memory segment, a semaphore or a queue belongs to the user. */
async function hasIpc({ uid }: User): Promise<boolean> {
  for (const name of ["shm", "sem", "msg"]) {
    const table = await readFile(`/proc/sysvipc/${name}`, "utf8").catch(() => "");
    const [titles = [], ...rows] = table.split("\n").map((line) => line.trim().split(/\s+/));
    const column = titles.indexOf("uid");
    if (column >= 0 && rows.some((row) => row[column] === String(uid))) return true;
  }
  return false;
}

/** Names needn't be UTF-8. */
async function hasFilesOf(folder: string, { uid }: User): Promise<boolean> {
  const names = await readdir(folder, { encoding: "buffer" }).catch(() => []);
  for (const name of names) {
    const stats = await lstat(Buffer.concat([Buffer.from(`${folder}/`), name])).catch(() => undefined);
    if (stats?.uid === uid) return true;
  }
  return false;
}

function isWorldWritable(folder: string): boolean {
  try {
    const stats = lstatSync(folder);
    return stats.isDirectory() && (stats.mode & 0o002) !== 0;
  } catch {
    // Not in this image.
    return false;
  }
}

/** The users that processes run as. */
export interface Users {
  /** Undefined: everything runs as the bridge's user. */
  readonly agent: User | undefined;
  /** Why users aren't isolated, or there are none. */
  readonly whyShared: string | undefined;
  /** A user without other processes. It is returned when its processes have ended. */
  take(): { readonly user: User | undefined; giveBack(): Promise<void> };
}

/** Tests whether each process can have a separate user, whose processes no other user sees. */
export function findUsers({ firstUser, ownSystem, unprivileged }: DaemonSettings): Users {
  const agent = { uid: firstUser, gid: firstUser };
  const whyNone = whyNoUsers(agent);
  const whyShared = whyNone ?? whyNotApart(agent, ownSystem);
  if (whyNone !== undefined || (whyShared !== undefined && !unprivileged)) {
    const shared = { user: undefined, giveBack: () => Promise.resolve() };
    return { agent: undefined, whyShared, take: () => shared };
  }
  const taken = new Set<number>();
  let next = 0;
  return {
    agent,
    whyShared,
    take: () => {
      if (taken.size === toolUsers) throw new Error(`${toolUsers} processes run already`);
      do next = (next + 1) % toolUsers;
      while (taken.has(next));
      const number = next;
      taken.add(number);
      // The session's group: the workspace is shared by all processes of the session.
      const user = { uid: firstUser + 1 + number, gid: agent.gid };
      const giveBack = async () => {
        await removeFilesOf(user);
        taken.delete(number);
      };
      return { user, giveBack };
    },
  };
}

function whyNoUsers(user: User): string | undefined {
  if (process.getuid?.() !== 0) return "the platform runs commands as an ordinary user";
  if (!seesProcessesOf(user))
    return "processes of other users can't be started, or not be seen, and so not be ended";
  return undefined;
}

function whyNotApart(user: User, ownSystem: boolean): string | undefined {
  if (!hidesProcesses(user)) {
    // Without the right to mount, it stays as it is.
    if (ownSystem) spawnSync("mount", ["-o", "remount,hidepid=2,gid=0", "/proc"], { stdio: "ignore" });
    if (!hidesProcesses(user))
      return "its users see each other's processes, and /proc can't be mounted with hidepid=2";
  }
  return isolateTmp(user, { ...user, uid: user.uid + 1 }, ownSystem);
}

/** With a control: the user that must not see this process sees its own. */
function hidesProcesses(user: User): boolean {
  // The shell itself reads: each further program would delay the start.
  const see =
    'sees() { words=; read -r words < "$1"; [ -n "$words" ]; }; sees /proc/self/cmdline && ! sees "/proc/$0/cmdline"';
  return runAs(user, see, `${process.pid}`);
}

function seesProcessesOf(user: User): boolean {
  let child: ChildProcess;
  try {
    child = spawn("/bin/sleep", ["10"], { ...user, stdio: "ignore" });
  } catch {
    // In a user namespace that doesn't have the user, such as bubblewrap's, Node throws.
    return false;
  }
  // A pid that it then doesn't have.
  child.on("error", () => undefined);
  const isSeen = child.pid !== undefined && existsSync(`/proc/${child.pid}/status`);
  child.kill("SIGKILL");
  return isSeen;
}
