import { chmod, mkdir, writeFile } from "node:fs/promises";

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
