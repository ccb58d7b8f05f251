import { chmodSync, chownSync, lstatSync, rmSync } from "node:fs";
import { lstat, readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { messageOf } from "@ambit/core/plugin";
import { randomText } from "../random.js";
import { chosenAs, startAs } from "../run-as.js";
import type { User } from "../user.js";

/** World-writable folders of every image. */
const worldWritable = ["/tmp", "/var/tmp", "/dev/shm", "/run/lock"];

/**
 * Makes files that a process creates in a world-writable folder private: with the folder's set-group-id bit, a new file
 * gets the folder's group, which no process is in, and the bridge's umask grants nothing to others.
 *
 * @param mayChange whether the folders belong to the sandbox; otherwise they are only checked.
 * @returns why not, as seen by doing it: what one user writes there, another one reads.
 */
export function isolateTmp(one: User, other: User, mayChange: boolean): string | undefined {
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
    const written = chosenAs(one, `for path do echo written > "$path" && ${readable}; done`, paths);
    const [seen] = chosenAs(other, `for path do ${readable}; done`, written);
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
export async function removeFilesOf(user: User): Promise<void> {
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
    const found = await lstat(Buffer.concat([Buffer.from(`${folder}/`), name])).catch(() => undefined);
    if (found?.uid === uid) return true;
  }
  return false;
}

function isWorldWritable(folder: string): boolean {
  try {
    const found = lstatSync(folder);
    return found.isDirectory() && (found.mode & 0o002) !== 0;
  } catch {
    // Not in this image.
    return false;
  }
}
