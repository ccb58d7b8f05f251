import { SourceFailed, type SourceFailureReason } from "@ambit/core";
import { type SourceReceipt, workspaceFileSchema } from "@ambit/core/contract";

/** A file of a source. */
export interface SourceEntry {
  /** Relative to the source's folder; checked. */
  readonly path: string;
  readonly content: Uint8Array;
  readonly executable: boolean;
}

/** What can't be put into a workspace. */
export interface LeftOut {
  readonly leftOut: string;
  readonly reason: "link" | "special" | "name";
}

/** Characters of a name that is left out. */
export const maxNameLength = 4_096;

/** Undefined for a name that would lead out of the workspace, or that files may not have there. */
export function pathOf(name: string): string | undefined {
  const path = name.replace(/^(\.\/)+/, "");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  const isPlain = !/[\u0000-\u001f\u007f]/.test(path);
  return isPlain && workspaceFileSchema.safeParse(path).success ? path : undefined;
}

/** A source whose files are all at hand, before any of them is in a workspace. */
export interface PreparedSource {
  /** What the receipt says of it besides its files. */
  readonly facts: Pick<SourceReceipt, "url" | "archive" | "commit" | "tree" | "submodules">;
  /** Its files, once. */
  readonly entries: AsyncIterable<SourceEntry | LeftOut> | Iterable<SourceEntry>;
  /** Its `.git`, once: what git packs differs from one time to the next, so the digest leaves it out. */
  readonly repository?: AsyncIterable<SourceEntry>;
  /** Removes what it keeps on disk. */
  close(): Promise<void>;
}

/** Where the files of a source go in the workspace: empty, or with a slash at the end. Pure. */
export function placeOf({ into }: { readonly into?: string | undefined }): string {
  return into === undefined ? "" : `${into.replace(/\/+$/, "")}/`;
}

/** @param index of the source in the request. */
export function sourceFailed(
  index: number,
  reason: SourceFailureReason,
  message: string,
  cause?: unknown,
): SourceFailed {
  return new SourceFailed(`workspace.sources[${index}] ${message}`, reason, { cause });
}

/** An archive isn't of its format. */
export class ArchiveDamaged extends Error {}

/** An archive has more than was asked for. */
export class ArchiveTooLarge extends Error {}

/** An archive says too much of a file beside its content. */
export class TarHeaderTooLong extends Error {}
