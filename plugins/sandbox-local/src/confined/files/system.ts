import { access, lstat, readlink } from "node:fs/promises";
import { codeOf } from "@ambit/core/plugin";
import type { SystemEntry } from "../launch/arguments.js";

const systemFolders = [
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  // The number and kind of processors, which `/proc/cpuinfo` shows too.
  "/sys/devices/system/cpu",
  "/sys/devices/system/node",
];

/**
 * World-readable files that describe the host; the rest of `/proc` is readable by root only, or belongs to the jail's
 * namespaces.
 */
export const revealingProcEntries: readonly string[] = ["/proc/key-users", "/proc/keys", "/proc/sched_debug"];

/** The parts of this host that every jail shows unchanged. */
export async function systemEntries(): Promise<readonly SystemEntry[]> {
  const entries = await Promise.all(systemFolders.map(entryAt));
  return entries.filter((entry) => entry !== undefined);
}

export async function coveredOfProc(): Promise<readonly string[]> {
  const isThere = (path: string) =>
    access(path).then(
      () => true,
      () => false,
    );
  const found = await Promise.all(revealingProcEntries.map(isThere));
  return revealingProcEntries.filter((_path, index) => found[index]);
}

async function entryAt(path: string): Promise<SystemEntry | undefined> {
  try {
    const found = await lstat(path);
    if (found.isSymbolicLink()) return { kind: "link", path, target: await readlink(path) };
    return found.isDirectory() ? { kind: "folder", path } : undefined;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
