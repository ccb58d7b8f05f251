import { Readable, Transform } from "node:stream";
import { buffer } from "node:stream/consumers";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { extract } from "tar-stream";
import { type Entry, fromRandomAccessReaderPromise, getFileNameLowLevel, RandomAccessReader } from "yauzl";
import {
  ArchiveDamaged,
  ArchiveTooLarge,
  type LeftOut,
  maxNameLength,
  pathOf,
  type SourceEntry,
  TarHeaderTooLong,
} from "./source.js";

type TarFormat = "tar" | "tar.gz" | "tar.zst";

/**
 * The files of an archive, one after the other. What is decompressed is never more than was asked for: a small archive can
 * hold any amount.
 *
 * @throws ArchiveDamaged for what isn't such an archive; TarHeaderTooLong; ArchiveTooLarge beyond `maxBytes`
 */
export async function* archiveEntries(
  archive: ArchiveBytes,
  format: TarFormat | "zip",
  maxBytes: number,
): AsyncGenerator<SourceEntry | LeftOut, void, undefined> {
  if (format === "zip") yield* zipEntries(archive, maxBytes);
  else yield* tarEntries(archive, format, maxBytes);
}

/** An archive, wherever it is kept. */
export interface ArchiveBytes {
  readonly size: number;
  /** @param end the place after the last byte */
  read(start: number, end: number): AsyncIterable<Uint8Array>;
}

/**
 * Tells what the reader of a format objects to in an archive from what happens on the way to that reader: only the first is
 * a damaged archive.
 */
class FormatReading {
  readonly #elsewhere = new WeakSet<Error>();

  /** The failures of this stream keep their meaning, though the reader passes them on like its own. */
  watch(stream: Readable): void {
    stream.on("error", (error) => this.#elsewhere.add(error));
  }

  /** @throws ArchiveDamaged; what a watched stream failed with */
  async *each<Entry>(entries: AsyncIterable<Entry>): AsyncGenerator<Entry, void, undefined> {
    try {
      yield* entries;
    } catch (error) {
      throw this.#meaning(error);
    }
  }

  /** @throws ArchiveDamaged; what a watched stream failed with */
  async one<Read>(read: () => Promise<Read> | Read): Promise<Read> {
    try {
      return await read();
    } catch (error) {
      throw this.#meaning(error);
    }
  }

  #meaning(error: unknown): unknown {
    if (error instanceof Error && this.#elsewhere.has(error)) return error;
    return new ArchiveDamaged("The archive isn't of its format.", { cause: error });
  }
}

/** Bytes of an archive besides the contents of its files. */
const maxHeaderBytes = 128 * 1024 * 1024;

/**
 * The files of a tar archive, one after the other.
 * @throws ArchiveDamaged for what isn't such an archive; TarHeaderTooLong; ArchiveTooLarge beyond `maxBytes`
 */
async function* tarEntries(
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

/** Counts all that is unpacked, since what is left out costs time too. */
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
const maxExtensionBytes: ReadonlyMap<string, number> = new Map([
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
  let partialBlock: Buffer = Buffer.alloc(0);
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const bytes = partialBlock.length === 0 ? chunk : Buffer.concat([partialBlock, chunk]);
      const whole = bytes.length - (bytes.length % block);
      partialBlock = bytes.subarray(whole);
      const blocks = bytes.subarray(0, whole);
      if (hasTooLong(blocks)) return done(new TarHeaderTooLong());
      if (whole > 0) this.push(blocks);
      done();
    },
    flush(done) {
      done(null, partialBlock);
    },
  });
}

function hasTooLong(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += block) if (isTooLong(bytes.subarray(at, at + block))) return true;
  return false;
}

function isTooLong(bytes: Buffer): boolean {
  const max = maxExtensionBytes.get(String.fromCharCode(bytes[156] ?? 0));
  return max !== undefined && bytes.toString("latin1", 257, 262) === "ustar" && sizeIn(bytes) > max;
}

/** Infinite where it isn't written in octal digits, as any size of such a header can be. */
function sizeIn(bytes: Buffer): number {
  const [, digits] = /^[\0 ]*([0-7]+)[\0 ]*$/.exec(bytes.toString("latin1", 124, 136)) ?? [];
  return digits === undefined ? Number.POSITIVE_INFINITY : Number.parseInt(digits, 8);
}

/** The system in `versionMadeBy` that has modes (APPNOTE 4.4.2). */
const unix = 3;
const types = { mask: 0o170000, file: 0o100000, link: 0o120000 } as const;

/**
 * The files of a zip archive, as its central directory lists them, one after the other.
 * @throws ArchiveDamaged for what isn't such an archive, or is encrypted; ArchiveTooLarge beyond `maxBytes`
 */
async function* zipEntries(
  archive: ArchiveBytes,
  maxBytes: number,
): AsyncGenerator<SourceEntry | LeftOut, void, undefined> {
  const reading = new FormatReading();
  // A content that is longer than its entry says is an error.
  const options = { lazyEntries: true, decodeStrings: false, validateEntrySizes: true } as const;
  const zip = await reading.one(() =>
    fromRandomAccessReaderPromise(new Reader(archive, reading), archive.size, options),
  );
  try {
    for await (const entry of reading.each(zip.eachEntry())) {
      const { generalPurposeBitFlag, fileNameRaw, extraFields, uncompressedSize } = entry;
      const name = await reading.one(() =>
        getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, true),
      );
      if (name.endsWith("/")) continue;
      const path = pathOf(name);
      const type = modeOf(entry) & types.mask;
      if (path === undefined) yield { leftOut: name.slice(0, maxNameLength), reason: "name" };
      else if (type !== 0 && type !== types.file)
        yield { leftOut: path, reason: type === types.link ? "link" : "special" };
      else {
        if (uncompressedSize > maxBytes) throw new ArchiveTooLarge();
        const content = await reading.one(async () => buffer(await zip.openReadStreamPromise(entry)));
        yield { path, content, executable: (modeOf(entry) & 0o100) !== 0 };
      }
    }
  } finally {
    zip.close();
  }
}

/** Type and permissions; 0 where the archive doesn't have them. */
function modeOf({ versionMadeBy, externalFileAttributes }: Entry): number {
  return versionMadeBy >> 8 === unix ? externalFileAttributes >>> 16 : 0;
}

class Reader extends RandomAccessReader {
  constructor(
    readonly archive: ArchiveBytes,
    readonly reading: FormatReading,
  ) {
    super();
  }

  override _readStreamForRange(start: number, end: number): Readable {
    const bytes = Readable.from(this.archive.read(start, end), { objectMode: false });
    this.reading.watch(bytes);
    return bytes;
  }
}
