import type { GitCommand } from "./git.js";

const submoduleMode = "160000";
const nothing = "000000";

/**
 * Lists what each commit changed, of a merge against its first parent. The oldest commits, whose parents weren't fetched, have
 * changed nothing.
 */
export function changesCommand(ref: string, maxOutput: number): GitCommand {
  const how = ["--raw", "-r", "-z", "--no-abbrev", "--no-renames", "--diff-merges=first-parent"];
  return { args: ["-c", "log.showRoot=false", "log", "--format=", ...how, ref, "--"], maxOutput };
}

const change = /^:(\d{6}) (\d{6}) ([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) [A-Z]$/;

/**
 * The contents before and after each change: with them, any two of the commits can be compared. Each change is two texts, what
 * it is and its path.
 *
 * @throws Error for anything else than such a list
 */
export function changedContents(listed: Buffer): ReadonlySet<string> {
  const ids = new Set<string>();
  for (let at = 0; at < listed.length; ) {
    const end = listed.indexOf(0, at);
    const next = listed.indexOf(0, end + 1);
    const [, before, after, old, fresh] = change.exec(listed.toString("latin1", at, Math.max(at, end))) ?? [];
    if (
      next <= end ||
      before === undefined ||
      after === undefined ||
      old === undefined ||
      fresh === undefined
    )
      throw new Error("a list of changes that can't be read");
    if (before !== nothing && before !== submoduleMode) ids.add(old);
    if (after !== nothing && after !== submoduleMode) ids.add(fresh);
    at = next + 1;
  }
  return ids;
}

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
  /** Bytes of all contents: at most that much is fetched for them. */
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

/** The files and folders that are wanted of a repository. */
export class Sparse {
  /** The paths without what doesn't count, such as a slash at the end. */
  readonly paths: readonly string[];
  readonly #wanted: ReadonlySet<string>;
  /** Lengths of the wanted paths: a path can lie in as many folders as it has characters. */
  readonly #lengths: ReadonlySet<number>;

  constructor(requestedPaths: readonly string[]) {
    this.paths = requestedPaths.map((path) =>
      path
        .split("/")
        .filter((name) => name !== "" && name !== ".")
        .join("/"),
    );
    this.#wanted = new Set(this.paths.map(bytesOf));
    this.#lengths = new Set([...this.#wanted].map(({ length }) => length));
  }

  /** Whether a path, as `TreeEntry` has it, is one of them or in one of them. */
  has(path: string): boolean {
    if (this.#wanted.has(path)) return true;
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1))
      if (this.#lengths.has(end) && this.#wanted.has(path.slice(0, end))) return true;
    return false;
  }

  /** The files of attributes that may say something of what is wanted, beyond those in it. */
  get attributesAbove(): readonly string[] {
    const above = new Set([".gitattributes"]);
    for (const path of this.paths)
      for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1))
        above.add(`${path.slice(0, end)}/.gitattributes`);
    return [...above];
  }

  /**
   * As `info/sparse-checkout` has it, for git inside.
   * @param leftOut paths as `TreeEntry` has them: git inside brings none of them back
   */
  patterns(leftOut: readonly string[]): Buffer {
    const wanted = [...this.#wanted].map((path) => `/${patternOf(path)}\n`);
    const not = leftOut.filter((path) => this.has(path)).map((path) => `!/${patternOf(path)}\n`);
    return Buffer.from([...wanted, ...not].join(""), "latin1");
  }
}

/**
 * Whether git reads such a file of the index where it isn't in the tree: without its content it would ask the host, as soon
 * as something is next to it. Pure.
 */
export function isReadFromIndex(path: string): boolean {
  return /(?:^|\/)\.git(?:attributes|ignore)$/.test(path) || path === ".gitmodules" || path === ".lfsconfig";
}

/** The pattern that matches this path and what is in it (gitignore, "Pattern format"). No pattern can have the end of a line. */
function patternOf(path: string): string {
  // No pattern for the spaces: it would look for the path's end from each space in it.
  let end = path.length;
  while (path[end - 1] === " ") end -= 1;
  const plain = path
    .slice(0, end)
    .replace(/[*?[\\]/g, "\\$&")
    .replace(/[\r\n]/g, "?");
  return plain + "\\ ".repeat(path.length - end);
}

const bytesOf = (text: string) => Buffer.from(text).toString("latin1");

/** Where a repository says that its submodules are. */
interface Submodule {
  readonly path: string;
  readonly url: string;
}

/**
 * The submodules of `.gitmodules`, as `git config --null --list` prints it. Other settings in it are ignored: `update`,
 * `branch`, `ignore`. Pure.
 */
export function submodulesIn(listed: string): readonly Submodule[] {
  const sections = new Map<string, { path?: string; url?: string }>();
  for (const entry of listed.split("\0")) {
    const [, name, key, value] = /^submodule\.(.+)\.(path|url)\n(.*)$/s.exec(entry) ?? [];
    if (name === undefined || value === undefined) continue;
    const section = sections.get(name) ?? {};
    sections.set(name, key === "path" ? { ...section, path: value } : { ...section, url: value });
  }
  return [...sections.values()].flatMap(({ path, url }) =>
    path === undefined || url === undefined ? [] : [{ path, url }],
  );
}

/**
 * The URL of a submodule, resolved against its repository's. Undefined for one that isn't on the same host and port: git
 * reaches no other. One over SSH is reached by HTTPS. Pure.
 */
export function submoduleUrl(url: string, parent: string): string | undefined {
  const [, sshHost, sshPath] = /^(?:ssh:\/\/)?git@([^:/]+)[:/](.+)$/.exec(url) ?? [];
  if (sshHost !== undefined) return submoduleUrl(`https://${sshHost}/${sshPath}`, parent);
  const isRelative = url.startsWith("./") || url.startsWith("../");
  const text = isRelative ? new URL(url, `${parent.replace(/\/$/, "")}/`).href : url;
  if (!URL.canParse(text)) return undefined;
  const { href, origin, username, password, search, hash } = new URL(text);
  if (origin !== new URL(parent).origin) return undefined;
  // The URL as it was parsed: git must not read the same text as another host.
  return username + password + search + hash === "" ? href.replace(/\/$/, "") : undefined;
}
