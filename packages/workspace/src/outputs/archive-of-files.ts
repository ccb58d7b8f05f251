import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Pack, pack } from "tar-stream";
import type { Blob } from "../blobs/blobs.js";
import type { OutputsManifest } from "./manifest.js";

type Kept = Pick<OutputsManifest, "createdAt" | "files">;
/** @returns undefined where it is missing */
type Open = (name: string) => Promise<Blob | undefined>;

/** A tar archive of files that are kept. Nothing is opened before it is read. */
export async function* archiveOf(kept: Kept, open: Open): AsyncGenerator<Uint8Array, void, undefined> {
  const archive = pack();
  void fill(archive, kept, open).then(
    () => archive.finalize(),
    (error: unknown) => archive.destroy(error instanceof Error ? error : new Error(String(error))),
  );
  yield* Readable.from(archive);
}

async function fill(archive: Pack, { createdAt, files }: Kept, open: Open): Promise<void> {
  const mtime = new Date(createdAt);
  for (const { path, name, size, executable } of files) {
    const found = await open(name);
    if (found === undefined) throw new Error(`the content of ${path} is missing`);
    const entry = archive.entry({ name: path, size, mode: executable ? 0o755 : 0o644, mtime });
    // If its reader leaves, both end: the content's file is closed, and the entry's error is handled.
    await pipeline(found.content, entry);
  }
}
