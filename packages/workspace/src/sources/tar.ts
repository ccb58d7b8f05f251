import { Readable, Transform } from "node:stream";
import { buffer } from "node:stream/consumers";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { extract } from "tar-stream";
import { type ArchiveBytes, ArchiveTooLarge, FormatReading, TarHeaderTooLong } from "./archive-reading.js";
import { type LeftOut, maxNameLength, pathOf, type SourceEntry } from "./source.js";

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

/** A block of an archive: headers begin at its multiples. */
const block = 512;
const kilobyte = 1_024;

/**
 * Bytes of what an archive says of a file beside its header, by its type: names (`L`, `K`) and attributes (`x`) of the next
 * file, and attributes of all that follow (`g`), which are copied for each of them.
 */
const maxBytes: ReadonlyMap<string, number> = new Map([
  ["L", 256 * kilobyte],
  ["K", 256 * kilobyte],
  ["x", 256 * kilobyte],
  ["g", 4 * kilobyte],
]);

/**
 * Passes a tar archive on, and fails before a header that is too long. It looks at every block, not
 * only where this header or that says the next one begins: the reader of the archive may read their sizes differently.
 */
function boundedHeaders(): Transform {
  let rest: Buffer = Buffer.alloc(0);
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const whole = bytes.length - (bytes.length % block);
      rest = bytes.subarray(whole);
      const blocks = bytes.subarray(0, whole);
      if (hasTooLong(blocks)) return done(new TarHeaderTooLong());
      if (whole > 0) this.push(blocks);
      done();
    },
    flush(done) {
      done(null, rest);
    },
  });
}

function hasTooLong(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += block) if (isTooLong(bytes.subarray(at, at + block))) return true;
  return false;
}

function isTooLong(bytes: Buffer): boolean {
  const max = maxBytes.get(String.fromCharCode(bytes[156] ?? 0));
  return max !== undefined && bytes.toString("latin1", 257, 262) === "ustar" && sizeIn(bytes) > max;
}

/** Infinite where it isn't written in octal digits, as any size of such a header can be. */
function sizeIn(bytes: Buffer): number {
  const [, digits] = /^[\0 ]*([0-7]+)[\0 ]*$/.exec(bytes.toString("latin1", 124, 136)) ?? [];
  return digits === undefined ? Number.POSITIVE_INFINITY : Number.parseInt(digits, 8);
}
