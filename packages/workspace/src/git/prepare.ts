import { messageOf, OutputsFailed } from "@ambit/core";
import type { GitSource, OmissionReason } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import { type Collected, collect } from "../collect.js";
import { type LeftOut, type PreparedSource, type SourceEntry, sourceFailed } from "../sources/source.js";

import { Spool } from "../spool.js";
import { type CheckedOut, checkOut, type Left } from "./checkout.js";
import { fixOf } from "./failure.js";
import { type Repository, RepositoryIncomplete, repositoryEntries, takeRepository } from "./repository.js";

interface PrepareGitOptions {
  /** The source's place in the request. */
  readonly index: number;
  readonly source: GitSource;
  /** A sandbox of its own for git; closed when the files are out. */
  readonly open: () => Promise<Sandbox>;
  /** The folder for files on their way. */
  readonly folder: string;
  readonly left: Left;
  readonly maxEntries: number;
  readonly signal: AbortSignal;
  /** Gets how many percent of a repository have arrived. */
  readonly received?: ((percent: number) => void) | undefined;
}

/** What a tree has beside files. */
const leftOutAs: Partial<Record<OmissionReason, LeftOut["reason"]>> = {
  link: "link",
  special: "special",
  name: "name",
};

/**
 * The files of a commit, brought out of the sandbox where git fetched them.
 * @throws SourceFailed, SandboxFailed; the signal's reason
 */
export async function prepareGit(options: PrepareGitOptions): Promise<PreparedSource> {
  const { index, source, left, folder, signal, received } = options;
  const spool = await Spool.open(folder);
  try {
    const sandbox = await options.open();
    try {
      const isPlain = new URL(source.url).protocol === "http:";
      const git = { sandbox, signal, isPlain, maxFileBytes: left.bytes, received };
      const done = await checkOut(index, source, git, left);
      const trees: { readonly below: string; readonly collected: Collected }[] = [];
      for (const checkedOut of done)
        trees.push({
          below: checkedOut.below,
          collected: await broughtOut(checkedOut, sandbox, spool, options),
        });
      const repository = await repositoryOf(done, trees[0]?.collected, spool, options);
      return {
        facts: factsOf(source, done),
        entries: entriesOf(trees, spool),
        ...(repository === undefined ? {} : { repository }),
        close: () => spool.close(),
      };
    } finally {
      await sandbox.close();
    }
  } catch (error) {
    await spool.close();
    throw error;
  }
}

function factsOf({ url }: GitSource, [first, ...submodules]: readonly CheckedOut[]): PreparedSource["facts"] {
  return {
    url,
    ...(first === undefined ? {} : { commit: first.commit, tree: first.tree }),
    ...(submodules.length === 0
      ? {}
      : { submodules: submodules.map(({ below, commit }) => ({ path: below.slice(0, -1), commit })) }),
  };
}

/** Undefined where none is asked for. */
async function repositoryOf(
  [root, ...submodules]: readonly CheckedOut[],
  collected: Collected | undefined,
  spool: Spool,
  { index, source, left, maxEntries }: PrepareGitOptions,
): Promise<PreparedSource["repository"]> {
  if (!source.repository || root === undefined || collected === undefined) return undefined;
  const limits = { maxEntries, maxFiles: left.files, maxBytes: left.bytes };
  const came = { files: collected.files, submodules: submodules.map(({ below }) => below.slice(0, -1)) };
  let taken: Repository;
  try {
    taken = await takeRepository(root, came, spool, limits);
  } catch (error) {
    if (!(error instanceof RepositoryIncomplete || error instanceof OutputsFailed)) throw error;
    const reason = error instanceof RepositoryIncomplete ? error.reason : "checkout_failed";
    throw sourceFailed(index, reason, `${fixOf(reason)} (its .git: ${error.message})`, error);
  }
  return repositoryEntries(taken, source, spool);
}

async function broughtOut(
  { folder: workspace }: CheckedOut,
  sandbox: Sandbox,
  spool: Spool,
  { index, left, maxEntries, signal }: PrepareGitOptions,
): Promise<Collected> {
  const wish = {
    workspace,
    include: ["**"],
    patch: false,
    known: [],
    maxEntries,
    maxFiles: left.files,
    maxBytes: left.bytes,
  };
  let collected: Collected;
  try {
    collected = await collect(sandbox, wish, spool, signal);
  } catch (error) {
    if (!(error instanceof OutputsFailed)) throw error;
    throw sourceFailed(index, "checkout_failed", `couldn't be read: ${messageOf(error)}`, error);
  }
  const lost = collected.omitted.find(({ reason }) => leftOutAs[reason] === undefined);
  if (lost === undefined && collected.omittedMore === 0) return collected;
  const isLarge = lost === undefined || lost.reason === "too_large" || lost.reason === "too_many";
  const reason = isLarge ? "too_large" : "checkout_failed";
  throw sourceFailed(index, reason, `${fixOf(reason)} (${lost?.path ?? "too many links"})`);
}

async function* entriesOf(
  trees: readonly { readonly below: string; readonly collected: Collected }[],
  spool: Spool,
): AsyncGenerator<SourceEntry | LeftOut, void, undefined> {
  for (const { below, collected } of trees) {
    for (const file of collected.files) {
      const { path, executable } = file;
      yield { path: below + path, content: await spool.whole(file), executable };
    }
    for (const { path, reason } of collected.omitted)
      yield { leftOut: below + path, reason: leftOutAs[reason] ?? "special" };
  }
}
