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
export function* treeEntries(listed: Buffer): Generator<TreeEntry, void, undefined> {
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
    yield { mode, type, id, size: Number(size === "-" ? 0 : (size ?? 0)), path };
    at = end + 1;
  }
}

/** A symbolic link in a tree. */
export const linkMode = "120000";
