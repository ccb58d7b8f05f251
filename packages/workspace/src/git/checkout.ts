import { type GitSource, gitRefSchema } from "@ambit/core/contract";
import { sourceFailed } from "../sources/source.js";
import { fixOf, gitFailureOf, lastWords } from "./failure.js";
import {
  type CommitIds,
  Git,
  type GitCommand,
  type GitOptions,
  type GitRun,
  idsCommand,
  idsIn,
} from "./git.js";
import { lfsSettings, maxPointerBytes } from "./lfs.js";
import {
  changedContents,
  changesCommand,
  isReadFromIndex,
  type LfsContents,
  lfsContentsIn,
  linkMode,
  Sparse,
  submodulesIn,
  submoduleUrl,
  type TreeEntry,
  treeEntries,
} from "./tree.js";

/** Submodules of one source, at any depth. */
const maxSubmodules = 200;
/** Bytes of the list of a tree, for each file that it may have: their paths are shorter on average. */
const maxListedBytes = 512;
/** Bytes of a `.gitmodules`. */
const maxModulesBytes = 1_048_576;

/** The reference of what was fetched. */
const sourceRef = "refs/ambit/source";

/** One repository whose files are in a folder of the sandbox. */
export interface CheckedOut {
  /** Where its files belong in the source; empty, or with a slash at the end. */
  readonly below: string;
  /** Absolute, as seen inside. */
  readonly folder: string;
  readonly commit: string;
  readonly tree: string;
  /** The branch that the commit is of; undefined for none, and where no repository is asked for. */
  readonly branch: string | undefined;
  readonly git: Git;
  /** Entries of the commit: all where a repository is asked for, else those that are wanted. */
  readonly entries: readonly TreeEntry[];
  /** The part of it that is wanted, where that isn't all. */
  readonly sparse: Sparse | undefined;
  /** Digests of what git LFS put in place of pointers. */
  readonly inLfs: ReadonlySet<string>;
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

/** What is known of a commit before anything of it is written. */
interface Fetched extends CommitIds {
  readonly branch: string | undefined;
  /** The list of what the commit has. */
  readonly listed: Buffer;
  /** What the commits changed; undefined where it isn't needed. */
  readonly changes: Buffer | undefined;
}

const noContents: LfsContents = { bytes: 0, digests: new Set() };

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
    const wantedPaths = isRoot ? this.source.sparse : undefined;
    const sparse = wantedPaths && new Sparse(wantedPaths);
    const { listed, changes, ...about } = await this.#fetch(git, { url, below, want }, sparse);
    const entries = treeEntries(listed);
    const wanted = sparse === undefined ? entries : await this.#fetchContents(git, entries, changes, sparse);
    const { digests: inLfs } = await this.#withinLimits(git, wanted);
    const links = this.source.submodules ? linksIn(wanted) : new Map<string, string>();
    const only = sparse && blobsIn(wanted);
    const modules = await this.#write(git, url, only, links.size === 0 ? undefined : about.commit);
    this.done.push({ below, folder: git.tree, ...about, git, entries, sparse, inLfs });
    if (modules !== undefined) await this.#takeSubmodules(url, below, links, modules);
  }

  /** All that needs no decision in between: the commit, and the list of what it has. Nothing of it is written yet. */
  async #fetch(git: Git, { url, below, want }: Wanted, sparse: Sparse | undefined): Promise<Fetched> {
    const isRoot = below === "";
    const { depth, repository } = this.source;
    const fetching: GitCommand = {
      args: [
        // One pack, however few objects there are.
        ...["-c", "fetch.unpackLimit=1", "fetch", this.#verbosity, "--no-tags", "--no-recurse-submodules"],
        `--depth=${isRoot ? depth : 1}`,
        ...(sparse === undefined ? [] : ["--filter=blob:none"]),
        ...["--refmap=", "origin", `+${want}:${sourceRef}`],
      ],
      reachesHost: true,
    };
    const readingIds = idsCommand(sourceRef);
    const listing = sparse === undefined ? this.#listing(true) : this.#listing(false, this.#listedOf(sparse));
    const isCompared = sparse !== undefined && repository && depth > 1;
    const changing = isCompared ? changesCommand(sourceRef, this.#maxListed) : undefined;
    const branches = isRoot ? branchesOf(this.source) : undefined;
    const ended = await git.run([
      { args: ["init", "--quiet", "--template="] },
      { args: ["config", "remote.origin.url", url] },
      ...[fetching, readingIds, listing],
      ...(changing === undefined ? [] : [changing]),
      // The last one: it may fail.
      ...(branches === undefined ? [] : [branches]),
    ]);
    const printed = ended.outputs.get(readingIds);
    if (printed === undefined) throw this.#failureOf(ended);
    const ids = idsIn(printed);
    if (ids === undefined) throw this.#failed("checkout_failed", "no commit");
    if (want.length >= 40 && /^[0-9a-f]+$/.test(want) && ids.commit !== want)
      throw this.#failed("ref_missing", `the host sent ${ids.commit} instead`);
    const listed = ended.outputs.get(listing);
    const changes = changing && ended.outputs.get(changing);
    if (listed === undefined || (isCompared && changes === undefined)) throw this.#failureOf(ended);
    const heads = branches && ended.outputs.get(branches)?.toString("utf8");
    const branch = heads === undefined ? undefined : branchIn(heads, namesOf(this.source.ref));
    return { ...ids, branch, listed, changes };
  }

  get #verbosity(): string {
    return this.options.received === undefined ? "--quiet" : "--progress";
  }

  /** A repository's index names all that a commit has. */
  #listedOf({ paths, attributesAbove }: Sparse): readonly string[] {
    return this.source.repository ? [] : [...paths, ...attributesAbove];
  }

  #listing(hasSizes: boolean, paths: readonly string[] = []): GitCommand {
    const how = ["ls-tree", "-r", "-z", "--full-tree", ...(hasSizes ? ["--long"] : [])];
    return { args: [...how, "--", sourceRef, ...paths], maxOutput: this.#maxListed };
  }

  get #maxListed(): number {
    return Math.max(1_048_576, (this.left.files + 1) * maxListedBytes);
  }

  /** @throws SourceFailed beyond the limits */
  async #withinLimits(git: Git, wanted: readonly TreeEntry[]): Promise<LfsContents> {
    const blobs = blobsIn(wanted);
    this.left.files -= blobs.length;
    this.left.bytes -= blobs.reduce((sum, { size }) => sum + size, 0);
    const inLfs = this.source.lfs === false ? noContents : await this.#lfsContents(git, blobs);
    this.left.bytes -= inLfs.bytes;
    if (this.left.files < 0 || this.left.bytes < 0) throw this.#failed("too_large", `${blobs.length} files`);
    return inLfs;
  }

  /**
   * Contents that a fetch without any left out: those that are wanted, and those that git needs to tell what changed.
   * @returns what is wanted, with sizes
   */
  async #fetchContents(
    git: Git,
    entries: readonly TreeEntry[],
    changes: Buffer | undefined,
    sparse: Sparse,
  ): Promise<readonly TreeEntry[]> {
    const all = blobsIn(entries);
    const wanted = all.filter(({ path }) => sparse.has(path));
    if (wanted.length > this.left.files) throw this.#failed("too_large", `${wanted.length} files`);
    const read = all.filter(({ path }) => isReadFromIndex(path));
    const changed = changes === undefined ? [] : changedContents(changes);
    const ids = new Set([...[...wanted, ...read].map(({ id }) => id), ...changed]);
    const args = [
      ...["-c", "fetch.negotiationAlgorithm=noop", "fetch", this.#verbosity, "--no-tags"],
      ...["--no-recurse-submodules", "--no-write-fetch-head", "--filter=blob:none", "--stdin", "origin"],
    ];
    const input = [...ids].map((id) => `${id}\n`).join("");
    const fetching = ids.size === 0 ? [] : [{ args, input, reachesHost: true } as const];
    const listing = this.#listing(true, sparse.paths);
    return treeEntries((await this.#succeed(git.run([...fetching, listing]))).stdout);
  }

  /** What the pointers among these files stand for. */
  async #lfsContents(git: Git, blobs: readonly TreeEntry[]): Promise<LfsContents> {
    const small = blobs.filter(({ size, mode }) => size < maxPointerBytes && mode !== linkMode);
    const ids = small.map(({ id }) => `${id}\n`).join("");
    const most = (small.length + 1) * (maxPointerBytes + 128);
    const reading = { args: ["cat-file", "--batch"], input: ids, maxOutput: most };
    return lfsContentsIn((await this.#succeed(git.run([reading]))).stdout);
  }

  /**
   * The index has the whole commit: git reads attributes in it that aren't written.
   *
   * @param only undefined: all is written
   * @returns the settings of submodules, where a commit is given to read them from
   */
  async #write(
    git: Git,
    url: string,
    only: readonly TreeEntry[] | undefined,
    commit: string | undefined,
  ): Promise<Buffer | undefined> {
    const names = only && Buffer.from(only.map(({ path }) => `${path}\0`).join(""), "latin1");
    const which = names === undefined ? ["--all"] : ["-z", "--stdin"];
    const writing: GitCommand = {
      args: [...this.#lfsSettings(url), "checkout-index", ...which, "--force", "--quiet"],
      ...(names === undefined ? {} : { input: names }),
      ...(this.source.lfs === false ? {} : { reachesHost: true }),
    };
    const modules: GitCommand = {
      args: ["config", "--blob", `${commit}:.gitmodules`, "--null", "--list"],
      maxOutput: maxModulesBytes,
      // A sparse source may lack this file until it is read.
      reachesHost: true,
    };
    const { outputs } = await this.#succeed(
      git.run([{ args: ["read-tree", sourceRef] }, writing, ...(commit === undefined ? [] : [modules])]),
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

/**
 * The commit that a source has now. It asks the host in any case, so that only those who may read the repository learn it.
 * Undefined where the host names no such branch or tag.
 *
 * @param index of the source in the request.
 * @throws SourceFailed; the signal's reason
 */
export async function headOf(
  index: number,
  source: GitSource,
  options: GitOptions,
): Promise<string | undefined> {
  const git = new Git(options, "head");
  const names = namesOf(source.ref);
  const references = names.flatMap((name) => [name, `${name}^{}`]);
  const asking = {
    args: ["ls-remote", "--quiet", "--", source.url, ...references],
    reachesHost: true,
  } as const;
  const ended = await git.run([asking]);
  if (ended.isTooMuch)
    throw sourceFailed(index, "checkout_failed", "couldn't be read: its host lists more than was asked for");
  if (ended.code !== 0) {
    const { reason } = gitFailureOf(ended.printed);
    throw sourceFailed(index, reason, `${fixOf(reason)} (${lastWords(ended.printed)})`);
  }
  return source.commit ?? commitIn(ended.stdout.toString("utf8"), names);
}

/** The references that a name may mean, in the order in which git looks for them (gitrevisions). */
export function namesOf(ref = "HEAD"): readonly string[] {
  return ref === "HEAD" || ref.startsWith("refs/")
    ? [ref]
    : [`refs/${ref}`, `refs/tags/${ref}`, `refs/heads/${ref}`];
}

/** The commit of the first name that is listed; of an annotated tag, the commit that it points to. Pure. */
function commitIn(listed: string, names: readonly string[]): string | undefined {
  const ids = new Map(
    [...listed.matchAll(/^([0-9a-f]{40}|[0-9a-f]{64})\t(.+)$/gm)].map(([, id, name]) => [name, id]),
  );
  const name = names.find((one) => ids.has(one));
  return name === undefined ? undefined : (ids.get(`${name}^{}`) ?? ids.get(name));
}

/** The branch that a name refers to; undefined for a tag, and for a branch whose name git doesn't accept. Pure. */
export function branchIn(listed: string, names: readonly string[]): string | undefined {
  const symbolic = /^ref: refs\/heads\/(.+)\tHEAD$/m.exec(listed)?.[1];
  const there = new Set([...listed.matchAll(/^[0-9a-f]+\t(.+)$/gm)].map(([, name]) => name));
  const name = names.find((one) => there.has(one));
  const branch = name === "HEAD" ? symbolic : /^refs\/heads\/(.+)$/.exec(name ?? "")?.[1];
  return gitRefSchema.safeParse(branch).data;
}
