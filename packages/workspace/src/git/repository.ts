import { type CollectedFile, collect } from "../outputs/collect.js";
import type { SourceEntry } from "../sources/entry.js";
import type { Spool } from "../spool/spool.js";
import type { CheckedOut } from "./checkout.js";
import type { Git } from "./program/git.js";

/** What git wrote of what it fetched, and what isn't a setting. */
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
export interface Came {
  readonly files: readonly { readonly path: string }[];
  /** Paths of submodules. */
  readonly submodules: readonly string[];
}

export interface Repository {
  /** Its files below `.git`. */
  readonly files: readonly CollectedFile[];
  /** Undefined: no branch is checked out. */
  readonly branch: string | undefined;
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
  const { git, branch } = root;
  const { sandbox, signal } = git.options;
  await completeIndex(root, came);
  const wish = { workspace: git.folder, include: taken, patch: false, known: [], ...limits };
  const { files, omitted } = await collect(sandbox, wish, spool, signal);
  const wanted = files.filter(({ path }) => isTaken.test(path));
  const missing = [".pack", ".idx", "index"].find((end) => !wanted.some(({ path }) => path.endsWith(end)));
  if (missing !== undefined) {
    const isLarge = omitted.some(({ reason }) => reason === "too_large" || reason === "too_many");
    throw new RepositoryIncomplete(isLarge ? "too_large" : "checkout_failed", `no ${missing}`);
  }
  return { files: wanted, branch };
}

/**
 * Completes the index with submodules, of which only the files come, and marks what isn't in the workspace as not checked out:
 * links, files whose names can't come in, and submodules that were left out.
 */
async function completeIndex({ git, entries }: CheckedOut, came: Came): Promise<void> {
  const there = new Set(came.files.map(({ path }) => Buffer.from(path).toString("latin1")));
  for (const path of came.submodules) there.add(Buffer.from(path).toString("latin1"));
  const submodules = entries.filter(({ type }) => type === "commit");
  const missing = entries.filter(({ path }) => !there.has(path));
  await update(
    git,
    ["--index-info"],
    submodules.map(({ mode, id, path }) => `${mode} ${id}\t${path}\0`),
  );
  await update(
    git,
    ["--skip-worktree", "--stdin"],
    missing.map(({ path }) => `${path}\0`),
  );
}

async function update(git: Git, how: readonly string[], names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const input = Buffer.from(names.join(""), "latin1");
  const ended = await git.run([{ args: ["update-index", "-z", ...how], input }]);
  if (ended.code !== 0) throw new RepositoryIncomplete("checkout_failed", "its index couldn't be written");
}

/** `.git` of a workspace: all settings are written here. */
export async function* repositoryEntries(
  { files, branch }: Repository,
  { url, commit }: { readonly url: string; readonly commit: string },
  spool: Spool,
): AsyncGenerator<SourceEntry, void, undefined> {
  for (const file of files) yield entry(file.path, await spool.whole(file));
  const remote = [
    `[remote "origin"]`,
    `\turl = ${quoted(url)}`,
    "\tfetch = +refs/heads/*:refs/remotes/origin/*",
  ];
  const core = ["[core]", "\trepositoryformatversion = 0", "\tfilemode = true", "\tbare = false"];
  if (branch === undefined) {
    yield entry("config", lines([...core, "\tlogallrefupdates = true", ...remote]));
    yield entry("HEAD", lines([commit]));
    // Git takes a folder without `refs` for no repository.
    yield entry("refs/ambit/source", lines([commit]));
    return;
  }
  const tracking = [
    `[branch ${quoted(branch)}]`,
    "\tremote = origin",
    `\tmerge = ${quoted(`refs/heads/${branch}`)}`,
  ];
  yield entry("config", lines([...core, "\tlogallrefupdates = true", ...remote, ...tracking]));
  yield entry("HEAD", lines([`ref: refs/heads/${branch}`]));
  yield entry(`refs/heads/${branch}`, lines([commit]));
  yield entry(`refs/remotes/origin/${branch}`, lines([commit]));
}

function entry(name: string, content: Uint8Array): SourceEntry {
  return { path: `.git/${name}`, content, executable: false };
}

const lines = (all: readonly string[]) => Buffer.from(`${all.join("\n")}\n`);

/** As a file of git's settings has text (git-config, "Syntax"). */
const quoted = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`;
