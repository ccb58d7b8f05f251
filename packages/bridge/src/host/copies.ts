import { createHash, type Hash } from "node:crypto";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { RequiredPath } from "@ambit/core/plugin";
import { SandboxFailed } from "@ambit/core/plugin";
import { create } from "tar";

interface Archive {
  /** Digest of the files' paths, sizes and times. */
  readonly fingerprint: string;
  readonly content: Promise<Uint8Array>;
}

/** The last archive: an agent's files are the same in most sandboxes, and packing them takes seconds. */
let last: Archive | undefined;

/**
 * The runner's files for a sandbox, as one gzipped archive with their absolute paths.
 * @throws SandboxFailed when they are more than a pipe should carry.
 */
export async function archiveOf(
  requiredPaths: readonly RequiredPath[],
  maxBytes: number,
): Promise<Uint8Array> {
  const seen = createHash("sha256");
  let size = 0;
  for (const { path, what } of requiredPaths) {
    size += await addToDigest(path, seen);
    if (size > maxBytes) {
      throw new SandboxFailed(
        `${what} is larger than the ${maxBytes} bytes that are copied into a sandbox: make it part of the image`,
      );
    }
  }
  const fingerprint = seen.digest("hex");
  if (last?.fingerprint === fingerprint) return await last.content;
  const made: Archive = { fingerprint, content: pack(requiredPaths) };
  last = made;
  try {
    return await made.content;
  } catch (error) {
    if (last === made) last = undefined;
    throw error;
  }
}

async function pack(requiredPaths: readonly RequiredPath[]): Promise<Uint8Array> {
  const paths = requiredPaths.map(({ path }) => path.replace(/^\/+/, ""));
  const pieces: Uint8Array[] = [];
  // Without the runner's owners and times.
  for await (const piece of create({ cwd: "/", gzip: true, portable: true, preservePaths: false }, paths)) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Bytes in all. */
async function addToDigest(path: string, seen: Hash): Promise<number> {
  const found = await lstat(path);
  seen.update(`${path}\0${found.size}\0${found.mtimeMs}\0${found.ino}\0`);
  if (!found.isDirectory()) return found.size;
  let size = 0;
  for (const name of (await readdir(path)).sort()) size += await addToDigest(join(path, name), seen);
  return size;
}
