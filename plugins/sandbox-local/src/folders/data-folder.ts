import { chmod, lstat, mkdir, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { codeOf, SandboxFailed } from "@ambit/core/plugin";

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
