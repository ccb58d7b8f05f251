import { createHash } from "node:crypto";
import type { ArchiveSource } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import { type DownloadOptions, download } from "./download.js";
import { prepareGit } from "./git/prepare.js";
import type { ArchiveBytes } from "./sources/archive.js";
import type { Prepare } from "./sources/fill.js";
import { type LeftOut, type PreparedSource, type SourceEntry, sourceFailed } from "./sources/source.js";

import { Spool } from "./spool.js";

export interface PrepareOptions {
  /** A sandbox of its own for the source of this index. */
  readonly open: (index: number) => Promise<Sandbox>;
  /** Downloads an archive. */
  readonly downloads: Pick<DownloadOptions, "open" | "whyNot">;
  /** The folder for files on their way. */
  readonly folder: string;
  /** Files and folders of a tree that are looked at. */
  readonly maxEntries: number;
  readonly signal: AbortSignal;
  /** Gets how many percent of the source of this index have arrived. */
  readonly received?: ((source: number, percent: number) => void) | undefined;
}

/** Puts the files of one source at hand, without any workspace. */
export function preparing({ open, downloads, received, ...options }: PrepareOptions): Prepare {
  return async (index, source, left) => {
    switch (source.type) {
      case "git":
        return prepareGit({
          ...options,
          index,
          source,
          left,
          open: () => open(index),
          received: received && ((percent) => received(index, percent)),
        });
      case "archive":
        return archived(index, source, left.bytes, { ...downloads, ...options, index });
      case "files":
        return ofEntries(
          source.files.map(({ path, content, encoding, executable }) => ({
            path,
            content: Buffer.from(content, encoding),
            executable,
          })),
        );
    }
  };
}

async function archived(
  index: number,
  source: ArchiveSource,
  maxBytes: number,
  options: DownloadOptions & Pick<PrepareOptions, "folder">,
): Promise<PreparedSource> {
  const { data = "", url } = source;
  if (url === undefined) {
    const bytes = Buffer.from(data, "base64");
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    return unpacked(index, source, { ...inMemory(bytes), sha256 }, maxBytes, async () => {});
  }
  const spool = await Spool.open(options.folder);
  try {
    const { at, size, sha256 } = await download({ ...source, url }, spool, maxBytes, options);
    const read = (start: number, end: number) => spool.read({ at: at + start, size: end - start });
    return unpacked(index, source, { size, read, sha256 }, maxBytes, () => spool.close());
  } catch (error) {
    await spool.close();
    throw error;
  }
}

function inMemory(bytes: Buffer): ArchiveBytes {
  return {
    size: bytes.length,
    read: async function* (start, end) {
      yield bytes.subarray(start, end);
    },
  };
}

/** @throws SourceFailed for another digest, before anything of it is unpacked */
function unpacked(
  index: number,
  { sha256, format, url }: ArchiveSource,
  archive: ArchiveBytes & { readonly sha256: string },
  maxBytes: number,
  close: () => Promise<void>,
): PreparedSource {
  if (sha256 !== undefined && sha256 !== archive.sha256)
    throw sourceFailed(
      index,
      "digest_mismatch",
      `has the SHA-256 digest ${archive.sha256}, and not the one that the request names`,
    );
  return {
    facts: {
      ...(url === undefined ? {} : { url: withoutQuery(url) }),
      archive: { bytes: archive.size, sha256: archive.sha256 },
    },
    entries: entriesOf(archive, format, maxBytes),
    close,
  };
}

async function* entriesOf(
  archive: ArchiveBytes,
  format: ArchiveSource["format"],
  maxBytes: number,
): AsyncGenerator<SourceEntry | LeftOut, void, undefined> {
  // Loaded when it is needed: a server starts without the readers of archives.
  const { archiveEntries } = await import("./sources/archive.js");
  yield* archiveEntries(archive, format, maxBytes);
}

/** It may be signed: who has it may download. */
function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function ofEntries(entries: PreparedSource["entries"]): PreparedSource {
  return { facts: {}, entries, close: async () => {} };
}
