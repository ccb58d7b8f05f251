import { OutputsFailed } from "@ambit/core";
import type { OutputChange, OutputFile, OutputsReceipt } from "@ambit/core/contract";
import type { Collected, CollectedFile, Omission } from "../collect.js";
import type { PatchedFile, PatchSide } from "../patch/git-patch.js";
import type { Spool } from "../spool.js";

/** Omitted paths that the receipt names. */
const maxNamed = 1_000;

/** Characters of a receipt's lists: an agent can make, or delete, any number of files with long paths. */
const maxListedCharacters = 8 * 1024 * 1024;
/** Characters of an entry besides its path: digests, sizes. */
const entryCharacters = 256;

/** The workspace at the run's start. */
export interface Base {
  readonly spool: Spool;
  readonly files: ReadonlyMap<string, PatchSide>;
  /** What is no regular file that could be read. */
  readonly others: ReadonlyMap<string, Omission>;
}

/** What a receipt lists, by path. */
export interface Listed {
  /** The files that the request includes. */
  readonly files: readonly CollectedFile[];
  readonly changes: readonly PatchedFile[];
  readonly omitted: OutputsReceipt["omitted"];
  readonly omittedMore?: number;
  /** Nothing was left out. */
  readonly complete: boolean;
}

/** What differs from the start, and what is taken out. Pure. @throws OutputsFailed for more than a receipt may list */
export function listed(collected: Collected, base: Pick<Base, "files" | "others"> | undefined): Listed {
  const { changes, omitted } = changesOf(collected, base);
  const files = collected.files.filter(({ included }) => included);
  const left = named(omitted, collected.omittedMore);
  // This comes before they are sorted, which takes longest.
  requireListable([files, left.omitted, changes]);
  const complete = omitted.length === 0 && collected.omittedMore === 0;
  return { files: files.sort(byPath), changes: changes.sort(byPath), ...left, complete };
}

/** The changes, in no order. What was no readable file at the start can't be compared: it is omitted. */
function changesOf(
  { files, deleted, omitted }: Collected,
  base: Pick<Base, "files" | "others"> | undefined,
): { readonly changes: PatchedFile[]; readonly omitted: readonly Omission[] } {
  if (base === undefined) return { changes: [], omitted };
  const changes: PatchedFile[] = [];
  const left = [...omitted];
  for (const { included: _included, ...after } of files) {
    const before = base.files.get(after.path);
    const other = base.others.get(after.path);
    if (other !== undefined) left.push(other);
    else if (before?.sha256 !== after.sha256 || before.executable !== after.executable)
      changes.push({ path: after.path, before, after });
  }
  for (const path of deleted) {
    const before = base.files.get(path);
    const other = base.others.get(path);
    if (before !== undefined) changes.push({ path, before, after: undefined });
    else if (other !== undefined) left.push(other);
  }
  return { changes, omitted: left };
}

/** @throws OutputsFailed */
function requireListable(lists: readonly (readonly { readonly path: string }[])[]): void {
  let [paths, characters] = [0, 0];
  for (const list of lists) {
    paths += list.length;
    for (const { path } of list) characters += path.length + entryCharacters;
  }
  if (characters > maxListedCharacters)
    throw new OutputsFailed(
      `The run's outputs have ${paths} paths, ${characters} characters with their digests, and a receipt has at most ${maxListedCharacters}: narrow outputs.include, or leave outputs.patch out.`,
    );
}

export function fileOf({
  path,
  size,
  sha256,
  executable,
}: CollectedFile | (PatchSide & { path: string })): OutputFile {
  return { path, size, sha256, ...(executable ? { executable } : {}) };
}

export function changeOf({ path, before, after }: PatchedFile): OutputChange {
  if (after === undefined) return { change: "deleted", path, before: before?.sha256 ?? "" };
  const now = fileOf({ path, ...after });
  return before === undefined
    ? { change: "added", ...now }
    : { change: "modified", ...now, before: before.sha256 };
}

function named(
  omitted: readonly Omission[],
  further: number,
): Pick<OutputsReceipt, "omitted" | "omittedMore"> {
  const more = Math.max(0, omitted.length - maxNamed) + further;
  return {
    omitted: omitted.slice(0, maxNamed).map(({ path, reason }) => ({ path, reason })),
    ...(more === 0 ? {} : { omittedMore: more }),
  };
}

/** Orders paths by their characters, not by a language's order. */
export function byPath(one: { readonly path: string }, other: { readonly path: string }): number {
  return one.path < other.path ? -1 : one.path > other.path ? 1 : 0;
}
