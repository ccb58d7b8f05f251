import { Readable, Transform } from "node:stream";
import { buffer } from "node:stream/consumers";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { extract } from "tar-stream";
import type { ArchiveBytes } from "./archive-bytes.js";
import { type LeftOut, maxNameLength, pathOf, type SourceEntry } from "./entry.js";
import { FormatReading } from "./format-reading.js";
import { boundedHeaders } from "./tar-headers.js";
import { ArchiveTooLarge } from "./too-large.js";

export type TarFormat = "tar" | "tar.gz" | "tar.zst";

/** Bytes of an archive besides the contents of its files. */
const maxHeaderBytes = 128 * 1024 * 1024;

/**
 * The files of a tar archive, one after the other.
 * @throws ArchiveDamaged for what isn't such an archive; TarHeaderTooLong; ArchiveTooLarge beyond `maxBytes`
 */
export async function* tarEntries(
  archive: ArchiveBytes,
  format: TarFormat,
  maxBytes: number,
): AsyncGenerator<SourceEntry | LeftOut, void, undefined> {
  const reading = new FormatReading();
  const reader = extract();
  const source = Readable.from(archive.read(0, archive.size));
  const unpacked =
    format === "tar" ? source : source.pipe(format === "tar.gz" ? createGunzip() : createZstdDecompress());
  const counted = bounded(maxBytes + maxHeaderBytes);
  const checked = boundedHeaders();
  for (const stream of [source, counted, checked]) reading.watch(stream);
  for (const stream of [source, unpacked, counted, checked])
    stream.on("error", (error) => reader.destroy(error));
  unpacked.pipe(counted).pipe(checked).pipe(reader);
  try {
    for await (const entry of reading.each(reader)) {
      const { name, type, mode = 0, size = 0 } = entry.header;
      const isFile = type === "file" || type === "contiguous-file";
      if (!isFile) entry.resume();
      if (type === "directory") continue;
      const path = pathOf(name);
      if (path === undefined) {
        entry.resume();
        yield { leftOut: name.slice(0, maxNameLength), reason: "name" };
      } else if (!isFile)
        yield { leftOut: path, reason: type === "link" || type === "symlink" ? "link" : "special" };
      else {
        if (size > maxBytes) throw new ArchiveTooLarge();
        const content = await reading.one(() => buffer(entry));
        yield { path, content, executable: (mode & 0o100) !== 0 };
      }
    }
  } finally {
    source.destroy();
    reader.destroy();
  }
}

/** Also what is left out costs time to unpack. */
function bounded(maxBytes: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > maxBytes) done(new ArchiveTooLarge());
      else done(null, chunk);
    },
  });
}
