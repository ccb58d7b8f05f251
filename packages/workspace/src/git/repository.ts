import type { GitSource } from "@ambit/core/contract";
import { type CollectedFile, collect } from "../collect.js";
import type { SourceEntry } from "../sources/source.js";
import type { Spool } from "../spool.js";
import type { CheckedOut } from "./checkout.js";
import type { Git } from "./git.js";
import { lfsPath } from "./lfs.js";

/** The files that git wrote of what it fetched. None of them is a setting. */
const taken = ["objects/pack/*.pack", "objects/pack/*.idx", "shallow", "index"];
const isTaken = /^(?:objects\/pack\/pack-[0-9a-f]{40,64}\.(?:pack|idx)|shallow|index)$/;

/** A repository that can't come out whole. */
export class RepositoryIncomplete extends Error {
  constructor(
    readonly reason: "too_large" | "checkout_failed",
    detail: string,
  ) {
    super(detail);
  }
}

/** What is in the workspace: git inside must not take the rest for deleted. */
interface Came {
  readonly files: readonly CollectedFile[];
  /** Paths of submodules. */
  readonly submodules: readonly string[];
}

export interface Repository {
  /** Its files below `.git`. */
  readonly files: readonly CollectedFile[];
  /** Contents that git LFS put in place of pointers: git inside finds them again, without a download. */
  readonly contents: readonly CollectedFile[];
  /** Paths of the commit that aren't in the workspace. */
  readonly missing: readonly string[];
  readonly root: Pick<CheckedOut, "commit" | "branch" | "sparse">;
}

/**
 * Takes out what makes a tree a repository: objects, index, and where history was cut. No setting, hook or reference that git
 * or the host wrote comes along.
 *
 * @throws RepositoryIncomplete, OutputsFailed; the signal's reason
 */
export async function takeRepository(
  root: CheckedOut,
  came: Came,
  spool: Spool,
  limits: { readonly maxEntries: number; readonly maxFiles: number; readonly maxBytes: number },
): Promise<Repository> {
  const { git, inLfs } = root;
  const { sandbox, signal } = git.options;
  const missing = missingOf(root, came);
  await markMissing(git, missing);
  const wish = { workspace: git.folder, include: taken, patch: false, known: [], ...limits };
  const { files, omitted } = await collect(sandbox, wish, spool, signal);
  const wanted = files.filter(({ path }) => isTaken.test(path));
  const lost =
    omitted.find(({ path }) => isTaken.test(path))?.path ??
    [".pack", ".idx", "index"].find((end) => !wanted.some(({ path }) => path.endsWith(end)));
  if (lost !== undefined) {
    const isLarge = omitted.some(({ reason }) => reason === "too_large" || reason === "too_many");
    throw new RepositoryIncomplete(isLarge ? "too_large" : "checkout_failed", `no ${lost}`);
  }
  const contents = came.files.filter(({ sha256 }) => inLfs.has(sha256));
  return { files: wanted, contents: withoutRepeats(contents), missing, root };
}

/** Paths that aren't wanted, links, files whose names can't come in, and submodules that were left out. */
function missingOf({ entries }: CheckedOut, came: Came): readonly string[] {
  const there = new Set(came.files.map(({ path }) => Buffer.from(path).toString("latin1")));
  for (const path of came.submodules) there.add(Buffer.from(path).toString("latin1"));
  return entries.flatMap(({ path }) => (there.has(path) ? [] : [path]));
}

/** Marks paths in the index as not checked out. */
async function markMissing(git: Git, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return;
  const input = Buffer.from(paths.map((path) => `${path}\0`).join(""), "latin1");
  const ended = await git.run([{ args: ["update-index", "-z", "--skip-worktree", "--stdin"], input }]);
  if (ended.code !== 0) throw new RepositoryIncomplete("checkout_failed", "its index couldn't be written");
}

const withoutRepeats = (files: readonly CollectedFile[]) => [
  ...new Map(files.map((file) => [file.sha256, file])).values(),
];

/** `.git` of a workspace: all settings are written here. */
export async function* repositoryEntries(
  { files, contents, missing, root: { branch, commit, sparse } }: Repository,
  { url, lfs }: Pick<GitSource, "url" | "lfs">,
  spool: Spool,
): AsyncGenerator<SourceEntry, void, undefined> {
  for (const file of files) {
    yield entry(file.path, await spool.whole(file));
    // Objects that the pack refers to may be missing.
    if (sparse !== undefined && file.path.endsWith(".pack"))
      yield entry(file.path.replace(/pack$/, "promisor"), lines([]));
  }
  for (const file of contents) yield entry(lfsPath(file.sha256), await spool.whole(file));
  if (sparse !== undefined) yield entry("info/sparse-checkout", sparse.patterns(missing));
  yield entry("config", settingsOf({ url, branch, isSparse: sparse !== undefined, hasLfs: lfs !== false }));
  if (branch === undefined) {
    yield entry("HEAD", lines([commit]));
    // Git takes a folder without `refs` for no repository.
    yield entry("refs/ambit/source", lines([commit]));
    return;
  }
  yield entry("HEAD", lines([`ref: refs/heads/${branch}`]));
  yield entry(`refs/heads/${branch}`, lines([commit]));
  yield entry(`refs/remotes/origin/${branch}`, lines([commit]));
}

function entry(name: string, content: Uint8Array): SourceEntry {
  return { path: `.git/${name}`, content, executable: false };
}

const lines = (all: readonly string[]) => Buffer.from(all.map((line) => `${line}\n`).join(""));

interface InsideSettings {
  /** URL of the remote `origin`, without a credential. Undefined: it has none. */
  readonly url: string | undefined;
  /** Undefined: none is checked out. */
  readonly branch: string | undefined;
  /** Whether only a part of the commit is there. */
  readonly isSparse: boolean;
  /** Whether contents of git LFS are there instead of their pointers. */
  readonly hasLfs: boolean;
}

/** `.git/config` of a workspace: none of it is a credential, and nothing of the repository's decides it. Pure. */
export function settingsOf({ url, branch, isSparse, hasLfs }: InsideSettings): Buffer {
  const lines = [
    "[core]",
    // Extensions need 1 (gitrepository-layout).
    `repositoryformatversion = ${isSparse ? 1 : 0}`,
    "filemode = true",
    "bare = false",
    "logallrefupdates = true",
    ...(isSparse ? sparseCore : []),
    ...(url === undefined
      ? []
      : [`[remote "origin"]`, `url = ${quoted(url)}`, "fetch = +refs/heads/*:refs/remotes/origin/*"]),
    ...(isSparse ? promisor : []),
    ...(branch === undefined || url === undefined
      ? []
      : [`[branch ${quoted(branch)}]`, "remote = origin", `merge = ${quoted(`refs/heads/${branch}`)}`]),
    ...(isSparse ? ["[extensions]", "partialClone = origin", ...noRoot] : []),
    ...(hasLfs ? lfsFilter : []),
  ];
  return Buffer.from(lines.map((line) => (line.startsWith("[") ? `${line}\n` : `\t${line}\n`)).join(""));
}

const sparseCore = ["sparseCheckout = true", "sparseCheckoutCone = false"];

/** Git takes contents that aren't there for such that `origin` has: nothing else may be missing. */
const promisor = ["promisor = true", "partialclonefilter = blob:none"];

/** The oldest commit that is there isn't compared with nothing: what it has outside is missing. */
const noRoot = ["[log]", "showRoot = false"];

/**
 * Git compares the pointer of a content with the index. Without git LFS it fails, rather than to take contents for changes
 * (`required`). For a content that isn't there and can't be downloaded, its pointer is written.
 */
const lfsFilter = [
  `[filter "lfs"]`,
  "clean = git-lfs clean -- %f",
  "smudge = git-lfs smudge -- %f",
  "process = git-lfs filter-process",
  "required = true",
  "[lfs]",
  "skipdownloaderrors = true",
  `[lfs "transfer"]`,
  "maxretries = 1",
];

/** Quotes a text as a file of git's settings has it (git-config, "Syntax"). */
const quoted = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`;
