import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";
import { constants, setPriority } from "node:os";
import type { Readable } from "node:stream";
import { messageOf } from "@ambit/core/plugin";

/**
 * Of a folder that its owner made unreadable, rm(1) can't remove what is in it: then the modes are mended first. Both
 * programs go down by descriptor and take names as bytes, however deep a tree is and whatever it is called.
 */
const script = `rm -rf -- "$1" 2>/dev/null && exit
chmod -R u+rwx -- "$1" 2>/dev/null
exec rm -rf -- "$1"`;

/** Bytes of what the programs complain of. */
const mostReason = 300;

/**
 * Removes a folder and all in it, in a process of its own: the work for a million files, which whoever filled the
 * folder chose, takes no time of this one. Nothing there is fine; links aren't followed. For folders in which nothing
 * runs any more.
 *
 * @returns why something is left; undefined when nothing is. Never rejects.
 */
export async function removeTree(path: string): Promise<string | undefined> {
  try {
    const child = spawn("/bin/sh", ["-c", script, "ambit-remove", path], {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
      // It goes on when this process is told to end, and when it has ended.
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

async function beginningOf(stream: Readable): Promise<string> {
  if (stream instanceof Socket) stream.unref();
  let text = "";
  for await (const chunk of stream) text += String(chunk).slice(0, mostReason - text.length);
  return text.trim();
}

function yieldTo({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // It has ended already.
  }
}
