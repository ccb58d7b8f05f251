/** A file of a commit's tree, as `git ls-tree -r -z --long` names it. */
export interface TreeEntry {
  readonly mode: string;
  readonly type: "blob" | "commit";
  readonly id: string;
  /** Bytes of a blob; 0 where it isn't known. */
  readonly size: number;
  /** One character for each byte. */
  readonly path: string;
}

const line = /^(\d{6}) (blob|commit) ([0-9a-f]{40}|[0-9a-f]{64})(?: +(\d+|-))?\t(.+)$/s;

/** @throws Error for anything else than such a list */
export function treeEntries(listed: Buffer): readonly TreeEntry[] {
  const entries: TreeEntry[] = [];
  for (let at = 0; at < listed.length; ) {
    const end = listed.indexOf(0, at);
    if (end === -1) throw new Error("a list of a tree that is cut off");
    const [, mode, type, id, size, path] = line.exec(listed.toString("latin1", at, end)) ?? [];
    if (
      mode === undefined ||
      id === undefined ||
      path === undefined ||
      (type !== "blob" && type !== "commit")
    )
      throw new Error("a list of a tree that can't be read");
    entries.push({ mode, type, id, size: Number(size === "-" ? 0 : (size ?? 0)), path });
    at = end + 1;
  }
  return entries;
}

/** A name that git LFS has or had: it takes a file with one of them for a pointer (git-lfs lfs/pointer.go). */
const lfsName = /git-lfs|git-media|hawser/;
const lfsSize = /^size (\d{1,15})/m;
const lfsDigest = /^oid sha256:([0-9a-f]{64})/m;

/** What git LFS's pointers stand for. */
export interface LfsContents {
  /** Of all: at most that much is fetched for them. */
  readonly bytes: number;
  readonly digests: ReadonlySet<string>;
}

/**
 * @param contents as `git cat-file --batch` prints blobs.
 * @throws Error for anything else
 */
export function lfsContentsIn(contents: Buffer): LfsContents {
  const digests = new Set<string>();
  let bytes = 0;
  for (let at = 0; at < contents.length; ) {
    const end = contents.indexOf("\n", at);
    const [, size] = /^[0-9a-f]+ blob (\d+)$/.exec(contents.toString("latin1", at, Math.max(at, end))) ?? [];
    if (size === undefined) throw new Error("contents of files that can't be read");
    const content = contents.toString("latin1", end + 1, end + 1 + Number(size));
    if (lfsName.test(content)) {
      bytes += Number(lfsSize.exec(content)?.[1] ?? 0);
      const digest = lfsDigest.exec(content)?.[1];
      if (digest !== undefined) digests.add(digest);
    }
    at = end + 1 + Number(size) + 1;
  }
  return { bytes, digests };
}

/** A symbolic link in a tree. */
export const linkMode = "120000";
