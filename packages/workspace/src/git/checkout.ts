import type { GitSource } from "@ambit/core/contract";
import { sourceFailed } from "../sources/source-error.js";
import { fixOf, gitFailureOf, lastWords } from "./failure.js";
import { branchIn, namesOf } from "./head.js";
import { lfsSettings, maxPointerBytes } from "./lfs.js";
import { lfsBytesIn, linkMode, type TreeEntry, treeEntries } from "./listing.js";
import { Git, type GitOptions, type GitRun } from "./program/git.js";
import { type CommitIds, idsCommand, idsIn } from "./program/ids.js";
import type { GitCommand } from "./program/script.js";
import { submodulesIn, submoduleUrl } from "./submodules.js";

/** Submodules of one source, at any depth. */
const maxSubmodules = 200;
/** Bytes of the list of a tree, for each file that it may have: their paths are shorter on average. */
const maxListedBytes = 512;
/** Bytes of a `.gitmodules`. */
const maxModulesBytes = 1_048_576;

/** What was fetched. */
const sourceRef = "refs/ambit/source";

/** One repository whose files are in a folder of the sandbox. */
export interface CheckedOut {
  /** Where its files belong in the source; empty, or with a slash at the end. */
  readonly below: string;
  /** Absolute, as seen inside. */
  readonly folder: string;
  readonly commit: string;
  readonly tree: string;
  /** That it is of; undefined for none, and where no repository is asked for. */
  readonly branch: string | undefined;
  readonly git: Git;
  readonly entries: readonly TreeEntry[];
}

/** What is left of the limits of all sources. */
export interface Left {
  readonly files: number;
  readonly bytes: number;
}

/**
 * Fetches a commit and writes its files into a folder of the sandbox, and those of its submodules into others. No hook, no
 * filter but git LFS, and no command of the repository runs.
 *
 * @param index of the source in the request.
 * @throws SourceFailed; the signal's reason
 */
export async function checkOut(
  index: number,
  source: GitSource,
  options: GitOptions,
  limits: Left,
): Promise<readonly CheckedOut[]> {
  const checkout = new Checkout(index, source, options, { ...limits });
  await checkout.take({ url: source.url, below: "", want: source.commit ?? source.ref ?? "HEAD" });
  return checkout.done;
}

interface Wanted {
  readonly url: string;
  readonly below: string;
  readonly want: string;
}

class Checkout {
  readonly done: CheckedOut[] = [];
  #started = 0;

  constructor(
    readonly index: number,
    readonly source: GitSource,
    readonly options: GitOptions,
    readonly left: { files: number; bytes: number },
  ) {}

  async take({ url, below, want }: Wanted): Promise<void> {
    const isRoot = below === "";
    const git = new Git(this.options, `repository-${this.#started++}`);
    const sparse = isRoot ? this.source.sparse?.map(withoutSlash) : undefined;
    const { commit, tree, branch, listed } = await this.#fetch(git, { url, below, want }, sparse);
    const entries = await this.#withinLimits(git, listed, sparse);
    const links = this.source.submodules ? linksIn(entries) : new Map<string, string>();
    const modules = await this.#write(git, url, entries, links.size === 0 ? undefined : commit);
    this.done.push({ below, folder: git.tree, commit, tree, branch, git, entries });
    if (modules !== undefined) await this.#takeSubmodules(url, below, links, modules);
  }

  /** All that needs no decision in between: the commit, and the list of what it has. Nothing of it is written yet. */
  async #fetch(
    git: Git,
    { url, below, want }: Wanted,
    sparse: readonly string[] | undefined,
  ): Promise<CommitIds & { readonly branch: string | undefined; readonly listed: Buffer }> {
    const isRoot = below === "";
    const fetching: GitCommand = {
      args: [
        // One pack, however few objects there are.
        ...["-c", "fetch.unpackLimit=1", "fetch", "--quiet", "--no-tags", "--no-recurse-submodules"],
        `--depth=${isRoot ? this.source.depth : 1}`,
        ...(sparse === undefined ? [] : ["--filter=blob:none"]),
        ...["--refmap=", "origin", `+${want}:${sourceRef}`],
      ],
      reachesHost: true,
    };
    const asked = idsCommand(sourceRef);
    const listing = this.#listing(sparse, sparse === undefined);
    const branches = isRoot ? branchesOf(this.source) : undefined;
    const ended = await git.run([
      { args: ["init", "--quiet", "--template="] },
      { args: ["config", "remote.origin.url", url] },
      ...[fetching, asked, listing],
      // The last one: it may fail.
      ...(branches === undefined ? [] : [branches]),
    ]);
    const printed = ended.outputs.get(asked);
    if (printed === undefined) throw this.#failureOf(ended);
    const ids = idsIn(printed);
    if (ids === undefined) throw this.#failed("checkout_failed", "no commit");
    if (want.length >= 40 && /^[0-9a-f]+$/.test(want) && ids.commit !== want)
      throw this.#failed("ref_missing", `the host sent ${ids.commit} instead`);
    const listed = ended.outputs.get(listing);
    if (listed === undefined) throw this.#failureOf(ended);
    const heads = branches && ended.outputs.get(branches)?.toString("utf8");
    const branch = heads === undefined ? undefined : branchIn(heads, namesOf(this.source.ref));
    return { ...ids, branch, listed };
  }

  #listing(sparse: readonly string[] = [], isLong: boolean): GitCommand {
    const how = ["ls-tree", "-r", "-z", "--full-tree", ...(isLong ? ["--long"] : [])];
    return {
      args: [...how, "--", sourceRef, ...sparse],
      maxOutput: Math.max(1_048_576, (this.left.files + 1) * maxListedBytes),
    };
  }

  /** What the commit has of the wanted paths. @throws SourceFailed beyond the limits */
  async #withinLimits(
    git: Git,
    listed: Buffer,
    sparse: readonly string[] | undefined,
  ): Promise<readonly TreeEntry[]> {
    let entries = await treeEntries(listed);
    if (sparse !== undefined)
      entries = await treeEntries(await this.#fetchBlobs(git, blobsIn(entries), sparse));
    const blobs = blobsIn(entries);
    this.left.files -= blobs.length;
    this.left.bytes -= blobs.reduce((sum, { size }) => sum + size, 0);
    if (this.source.lfs !== false) this.left.bytes -= await this.#lfsBytes(git, blobs);
    if (this.left.files < 0 || this.left.bytes < 0) throw this.#failed("too_large", `${blobs.length} files`);
    return entries;
  }

  /** Contents that a fetch without any left out. @returns the list of the tree, with their sizes */
  async #fetchBlobs(git: Git, blobs: readonly TreeEntry[], sparse: readonly string[]): Promise<Buffer> {
    if (blobs.length > this.left.files) throw this.#failed("too_large", `${blobs.length} files`);
    const args = [
      ...["-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"],
      ...["--no-recurse-submodules", "--no-write-fetch-head", "--filter=blob:none", "--stdin", "origin"],
    ];
    const ids = [...new Set(blobs.map(({ id }) => id))];
    const fetching = { args, input: ids.map((id) => `${id}\n`).join(""), reachesHost: true } as const;
    return (await this.#succeed(git.run([fetching, this.#listing(sparse, true)]))).stdout;
  }

  /** Of what the pointers among these files stand for. */
  async #lfsBytes(git: Git, blobs: readonly TreeEntry[]): Promise<number> {
    const small = blobs.filter(({ size, mode }) => size < maxPointerBytes && mode !== linkMode);
    const ids = small.map(({ id }) => `${id}\n`).join("");
    const most = (small.length + 1) * (maxPointerBytes + 128);
    const reading = { args: ["cat-file", "--batch"], input: ids, maxOutput: most };
    return await lfsBytesIn((await this.#succeed(git.run([reading]))).stdout);
  }

  /** @returns the settings of submodules, where a commit is given to read them from */
  async #write(
    git: Git,
    url: string,
    entries: readonly TreeEntry[],
    commit: string | undefined,
  ): Promise<Buffer | undefined> {
    const lines = blobsIn(entries).map(({ mode, id, path }) => `${mode} ${id}\t${path}\0`);
    const index = Buffer.from(lines.join(""), "latin1");
    const writing: GitCommand = {
      args: [...this.#lfsSettings(url), "checkout-index", "--all", "--force", "--quiet"],
      ...(this.source.lfs === false ? {} : { reachesHost: true }),
    };
    const modules: GitCommand = {
      args: ["config", "--blob", `${commit}:.gitmodules`, "--null", "--list"],
      maxOutput: maxModulesBytes,
      // A sparse source may lack this file until it is read.
      reachesHost: true,
    };
    const { outputs } = await this.#succeed(
      git.run([
        { args: ["update-index", "-z", "--index-info"], input: index },
        writing,
        ...(commit === undefined ? [] : [modules]),
      ]),
    );
    return outputs.get(modules);
  }

  /** The one filter that may run: the program that this sandbox has, with settings of ours before the repository's. */
  #lfsSettings(url: string): readonly string[] {
    if (this.source.lfs === false) return [];
    return lfsSettings(url);
  }

  async #takeSubmodules(
    url: string,
    below: string,
    links: ReadonlyMap<string, string>,
    modules: Buffer,
  ): Promise<void> {
    for (const { path, url: given } of submodulesIn(modules.toString("latin1"))) {
      const want = links.get(path);
      if (want === undefined) continue;
      const place = `${below}${Buffer.from(path, "latin1").toString()}`;
      const from = submoduleUrl(given, url);
      if (from === undefined)
        throw sourceFailed(
          this.index,
          "forbidden",
          `has the submodule '${place}' on another host: leave submodules out, or name it as a separate source`,
        );
      if (this.#started > maxSubmodules)
        throw this.#failed("too_large", `more than ${maxSubmodules} submodules`);
      await this.take({ url: from, below: `${place}/`, want });
    }
  }

  async #succeed(run: Promise<GitRun>): Promise<GitRun> {
    const ended = await run;
    if (ended.code === 0) return ended;
    throw this.#failureOf(ended);
  }

  #failureOf({ isTooMuch, printed, code }: GitRun): Error {
    if (isTooMuch) return this.#failed("too_large", "too many files");
    const { reason } = gitFailureOf(printed);
    return this.#failed(reason, lastWords(printed) || `git ended with ${code}`);
  }

  #failed(reason: Parameters<typeof fixOf>[0], detail: string): Error {
    return sourceFailed(this.index, reason, `${fixOf(reason)} (${detail})`);
  }
}

/** Asks the host which branch `HEAD` refers to, and whether a name is a branch's. Undefined where that isn't needed. */
function branchesOf({ url, ref, commit, repository }: GitSource): GitCommand | undefined {
  if (!repository || commit !== undefined) return undefined;
  return { args: ["ls-remote", "--quiet", "--symref", "--", url, ...namesOf(ref)], reachesHost: true };
}

/** The commit of each submodule, by its path. */
const linksIn = (entries: readonly TreeEntry[]) =>
  new Map(entries.flatMap(({ type, path, id }) => (type === "commit" ? [[path, id] as const] : [])));
const blobsIn = (entries: readonly TreeEntry[]) => entries.filter(({ type }) => type === "blob");
const withoutSlash = (path: string) => path.replace(/^(?:\.\/)+/, "").replace(/\/+$/, "");
