import { SetupFailed } from "@ambit/core";
import type { RunRequest } from "@ambit/core/contract";
import { KeptPieces } from "@ambit/core/plugin";
import { Automaton, formsOf } from "@ambit/secret-forms";
import { bytesOf, chunkSizeIn, lineOf, maxLineBytes, SnapshotError } from "../inside/snapshot/format.js";
import { snapshotFailed } from "../snapshots/archive.js";

/** A part of what the archive holds. */
interface ContentPart {
  readonly bytes: Uint8Array;
  /** Whether it has nothing to do with the part before. */
  readonly begins: boolean;
}

/**
 * What a snapshot's archive holds, as it was in the sandbox: names, targets of links, and contents of files without what the
 * archive has between their chunks.
 */
class ArchiveContents {
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

/** Shorter ones occur in any data. */
const minSecretLength = 8;

/** The credentials that setup commands and sources used, which were never inside. Pure. */
export function usedSecrets({
  environment,
  workspace,
}: Pick<RunRequest, "environment" | "workspace">): readonly string[] {
  const values = [
    ...(environment?.credentials ?? []).map(({ value }) => value),
    ...(workspace?.sources ?? []).flatMap((source) =>
      source.type !== "files" && source.credential !== undefined ? [source.credential.value] : [],
    ),
  ];
  // `user:password`: the password is secret by itself.
  const parts = values.flatMap((value) => [value, value.slice(value.indexOf(":") + 1)]);
  return [...new Set(parts)].filter((text) => text.length >= minSecretLength);
}

/**
 * The same bytes, searched for secrets in every form in which a run's output is searched for them. What is compressed or
 * encrypted can't be searched.
 * @param archive of a snapshot.
 * @throws SetupFailed in place of the bytes that have one; SnapshotFailed for what is no such archive
 */
export async function* withoutSecrets(
  archive: AsyncIterable<Uint8Array>,
  secrets: readonly string[],
): AsyncGenerator<Uint8Array, void, undefined> {
  if (secrets.length === 0) return yield* archive;
  const automaton = new Automaton(secrets.flatMap(formsOf));
  const contents = new ArchiveContents();
  let state = 0;
  for await (const piece of archive) {
    for (const { bytes, begins } of contents.in(piece)) {
      if (begins) state = 0;
      for (const byte of bytes) {
        state = automaton.step(state, byte);
        if (automaton.ending(state) >= 0)
          throw new SetupFailed(
            "What environment.setup prepared has a credential in it, so it isn't used: a command wrote one that came in by another way than environment.credentials or a source's credential. Remove it from the commands, environment.env and the sources.",
          );
      }
    }
    yield piece;
  }
}
