import { KeptPieces } from "@ambit/core/plugin";
import { lineOf } from "../inside/snapshot/checked-line.js";
import { bytesOf, chunkSizeIn, maxLineBytes, SnapshotError } from "../inside/snapshot/format.js";
import { snapshotFailed } from "../snapshot/report.js";

/** A part of what the archive holds. */
export interface ContentPart {
  readonly bytes: Uint8Array;
  /** Whether it has nothing to do with the part before. */
  readonly begins: boolean;
}

/**
 * What a snapshot's archive holds, as it was in the sandbox: names, targets of links, and contents of files without what the
 * archive has between their chunks.
 */
export class ArchiveContents {
  readonly #line = new KeptPieces();
  #length = 0;
  /** Whether the next line has the size of a chunk. */
  #isInFile = false;
  /** Bytes of a chunk that are still to come. */
  #left = 0;

  /** @param piece the next one of the archive. @throws SnapshotFailed for what can't be unpacked either */
  *in(piece: Uint8Array): Generator<ContentPart, void, undefined> {
    for (let at = 0; at < piece.length; ) {
      if (this.#left > 0) {
        const bytes = piece.subarray(at, at + this.#left);
        at += bytes.length;
        this.#left -= bytes.length;
        yield { bytes, begins: false };
        continue;
      }
      const end = piece.indexOf(10, at);
      const part = piece.subarray(at, end === -1 ? piece.length : end);
      this.#length += part.length;
      if (this.#length > maxLineBytes) throw snapshotFailed("damaged", "it has a line that is too long");
      this.#line.push(part);
      if (end === -1) return;
      at = end + 1;
      yield* this.#ended();
    }
  }

  #ended(): readonly ContentPart[] {
    const text = this.#line.take().toString();
    this.#length = 0;
    try {
      return this.#read(text);
    } catch (error) {
      throw error instanceof SnapshotError ? snapshotFailed(error.problem, error.message) : error;
    }
  }

  #read(text: string): readonly ContentPart[] {
    if (this.#isInFile) {
      this.#left = chunkSizeIn(text);
      this.#isInFile = this.#left > 0;
      return [];
    }
    const line = lineOf(text);
    this.#isInFile = line.type === "file";
    const texts = [
      ...("name" in line ? [line.name] : []),
      ...(line.type === "link" ? [line.target] : []),
      // The file's content begins.
      "",
    ];
    return texts.map((one) => ({ bytes: bytesOf(one), begins: true }));
  }
}
