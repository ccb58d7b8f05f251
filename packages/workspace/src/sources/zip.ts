import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { type Entry, fromRandomAccessReaderPromise, getFileNameLowLevel, RandomAccessReader } from "yauzl";
import { type ArchiveBytes, ArchiveTooLarge, FormatReading } from "./archive-reading.js";
import { type LeftOut, maxNameLength, pathOf, type SourceEntry } from "./source.js";

/** Where a system with modes made the archive (APPNOTE 4.4.2). */
const unix = 3;
const types = { mask: 0o170000, file: 0o100000, link: 0o120000 } as const;

/**
 * The files of a zip archive, as its central directory lists them, one after the other.
 * @throws ArchiveDamaged for what isn't such an archive, or is encrypted; ArchiveTooLarge beyond `maxBytes`
 */
export async function* zipEntries(
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
