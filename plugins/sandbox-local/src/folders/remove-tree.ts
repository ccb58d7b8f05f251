import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants as fileConstants } from "node:fs";
import { lstat, open, opendir, rmdir, unlink } from "node:fs/promises";
import { Socket } from "node:net";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { messageOf } from "@ambit/core/plugin";

/**
 * rm(1) can't remove the content of a folder that its owner made unreadable, so the modes are corrected first. Both
 * programs descend by descriptor and handle names as bytes, for a tree of any depth and with any names.
 */
const script = `rm -rf -- "$1" 2>/dev/null && exit
chmod -R u+rwx -- "$1" 2>/dev/null
exec rm -rf -- "$1"`;

const { O_DIRECTORY, O_NOFOLLOW } = fileConstants;

/** Characters of the programs' messages. */
const maxReasonLength = 300;

/** What is removed without a process: a tree of as many entries, not deeper, and without larger files. */
const small = { entries: 16, depth: 3, bytes: 1024 * 1024 };

/**
 * Removes a folder and everything in it, in a separate process unless it holds a few small files and folders at most:
 * the folder's content, and so the amount of work, was chosen by an agent. A missing folder is fine; links aren't
 * followed. Only for folders that no process uses any more.
 *
 * @returns why something is left; undefined if nothing is. Never rejects.
 */
export async function removeTree(path: string): Promise<string | undefined> {
  return await (await beginRemoval(path)).ended;
}

/** A removal that no longer needs this process. */
interface Removal {
  /** Why something is left; undefined if nothing is. Never rejects. */
  readonly ended: Promise<string | undefined>;
}

/** Like `removeTree`, up to the moment when all is removed, or a process that outlives this one removes the rest. Never rejects. */
export async function beginRemoval(path: string): Promise<Removal> {
  if (await isRemovedAtOnce(path)) return { ended: Promise.resolve(undefined) };
  return { ended: removedByProcess(path) };
}

async function removedByProcess(path: string): Promise<string | undefined> {
  try {
    const child = spawn("/bin/sh", ["-c", script, "ambit-remove", path], {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
      // It continues when this process is told to end, and after it has ended.
      detached: true,
      stdio: ["ignore", "ignore", "pipe"],
    });
    child.unref();
    const ended = once(child, "close");
    const complaint = beginningOf(child.stderr);
    yieldTo(child);
    const [code, signal] = await ended;
    if (code === 0) return undefined;
    return (await complaint) || `rm ended with ${signal ?? code}`;
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * Descends by descriptor too: a folder that is replaced by a link meanwhile isn't followed.
 *
 * @returns false as soon as something needs more, which is left for the process.
 */
async function isRemovedAtOnce(path: string): Promise<boolean> {
  let entries = 0;
  const remove = async (entry: string, depth: number): Promise<void> => {
    const stats = await lstat(entry);
    if (!stats.isDirectory()) {
      if (depth === 0 || stats.blocks * 512 > small.bytes)
        throw new RangeError("a file to remove is too large");
      return unlink(entry);
    }
    if (depth > small.depth) throw new RangeError("a tree to remove is too deep");
    await using folder = await open(entry, O_DIRECTORY | O_NOFOLLOW);
    const content = `/proc/self/fd/${folder.fd}`;
    for await (const { name } of await opendir(content)) {
      entries += 1;
      if (entries > small.entries) throw new RangeError("a tree to remove is too large");
      await remove(join(content, name), depth + 1);
    }
    await rmdir(entry);
  };
  return remove(path, 0).then(
    () => true,
    () => false,
  );
}

async function beginningOf(stream: Readable): Promise<string> {
  if (stream instanceof Socket) stream.unref();
  let text = "";
  for await (const chunk of stream) text += String(chunk).slice(0, maxReasonLength - text.length);
  return text.trim();
}

function yieldTo({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // It has ended already.
  }
}
