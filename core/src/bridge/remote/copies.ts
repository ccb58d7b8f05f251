import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { create } from "tar";
import { SandboxFailed } from "../../errors.js";
import type { RuntimePath } from "../../plugin/index.js";

/**
 * The runner's files that a sandbox is given, as one gzipped archive with their paths from the root.
 * @throws SandboxFailed when they are more than a pipe should carry.
 */
export async function archiveOf(runtimes: readonly RuntimePath[], mostBytes: number): Promise<Uint8Array> {
  let size = 0;
  for (const { path, what } of runtimes) {
    size += await sizeOf(path);
    if (size > mostBytes) {
      throw new SandboxFailed(
        `${what} is larger than the ${mostBytes} bytes that are copied into a sandbox: make it part of the image`,
      );
    }
  }
  const paths = runtimes.map(({ path }) => path.replace(/^\/+/, ""));
  const pieces: Uint8Array[] = [];
  // Owners and times are the runner's own affair.
  for await (const piece of create({ cwd: "/", gzip: true, portable: true, preservePaths: false }, paths)) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

async function sizeOf(path: string): Promise<number> {
  const found = await lstat(path);
  if (!found.isDirectory()) return found.size;
  const sizes = await Promise.all((await readdir(path)).map((name) => sizeOf(join(path, name))));
  return sizes.reduce((total, size) => total + size, 0);
}
