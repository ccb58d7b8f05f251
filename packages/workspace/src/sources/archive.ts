import type { ArchiveBytes } from "./archive-reading.js";
import type { LeftOut, SourceEntry } from "./source.js";
import type { TarFormat } from "./tar.js";

type ArchiveFormat = TarFormat | "zip";

/**
 * The files of an archive, one after the other. What is decompressed is never more than was asked for: a small archive can
 * hold any amount.
 *
 * @throws ArchiveDamaged for what isn't such an archive; TarHeaderTooLong; ArchiveTooLarge beyond `maxBytes`
 */
export async function* archiveEntries(
  archive: ArchiveBytes,
  format: ArchiveFormat,
  maxBytes: number,
): AsyncGenerator<SourceEntry | LeftOut, void, undefined> {
  // Loaded when they are needed: a server starts without them.
  if (format === "zip") yield* (await import("./zip.js")).zipEntries(archive, maxBytes);
  else yield* (await import("./tar.js")).tarEntries(archive, format, maxBytes);
}
