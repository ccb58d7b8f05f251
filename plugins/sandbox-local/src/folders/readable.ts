import { chmod, mkdir, writeFile } from "node:fs/promises";

/** A file that sessions' users read, whatever the runner's umask is. */
export async function writeReadable(path: string, content: string | Uint8Array): Promise<void> {
  await writeFile(path, content);
  await chmod(path, 0o644);
}

/** A folder that sessions' users read; those above it are made too. */
export async function makeReadableFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first !== undefined) await chmod(first, 0o755);
  await chmod(path, 0o755);
}
