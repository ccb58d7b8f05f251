import { chmod, lstat, opendir, rm } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "@ambit/core/plugin";

const options = { recursive: true, force: true, maxRetries: 3, retryDelay: 20 } as const;

/**
 * Removes a folder and all in it, also what its owner made unreadable. Nothing there is fine; links aren't
 * followed. For folders in which nothing runs any more.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, options);
  } catch (error) {
    if (codeOf(error) !== "EACCES" && codeOf(error) !== "EPERM") throw error;
    await makeRemovable(path);
    await rm(path, options);
  }
}

async function makeRemovable(folder: string): Promise<void> {
  if (!(await lstat(folder)).isDirectory()) return;
  await chmod(folder, 0o700);
  for await (const entry of await opendir(folder)) {
    if (entry.isDirectory()) await makeRemovable(join(folder, entry.name));
  }
}
