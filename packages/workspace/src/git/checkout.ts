import type { GitSource } from "@ambit/core/contract";
import { sourceFailed } from "../sources/source-error.js";
import { fixOf, gitFailureOf, lastWords } from "./failure.js";
import { lfsSettings, maxPointerBytes } from "./lfs.js";
import { lfsBytesIn, linkMode, type TreeEntry, treeEntries } from "./listing.js";
import { Git, type GitOptions, type GitRun, TooMuchOutput } from "./program.js";
import { submodulesIn, submoduleUrl } from "./submodules.js";

/** Submodules of one source, at any depth. */
const maxSubmodules = 200;
/** Bytes of the list of a tree, for each file that it may have: their paths are shorter on average. */
const maxListedBytes = 512;
/** Bytes of a `.gitmodules`. */
const maxModulesBytes = 1_048_576;

/** One repository whose files are in a folder of the sandbox. */
export interface CheckedOut {
  /** Where its files belong in the source; empty, or with a slash at the end. */
  readonly below: string;
  /** Absolute, as seen inside. */
  readonly folder: string;
  readonly commit: string;
  readonly tree: string;
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
    const { source } = this;
    const isRoot = below === "";
    const git = new Git(this.options, `repository-${this.#started++}`);
    const sparse = isRoot ? source.sparse?.map(withoutSlash) : undefined;
    await this.#succeed(git.run(["init", "--quiet", "--template="]));
    await this.#succeed(git.run(["config", "remote.origin.url", url]));
    await this.#succeed(
      git.run([
        ...[
          // One pack, however few objects there are.
          "-c",
          "fetch.unpackLimit=1",
          "fetch",
          "--quiet",
          "--no-tags",
          "--no-recurse-submodules",
          `--depth=${isRoot ? source.depth : 1}`,
        ],
        ...(sparse === undefined ? [] : ["--filter=blob:none"]),
        ...["--refmap=", "origin", `+${want}:refs/ambit/source`],
      ]),
    );
    const { commit, tree } = await this.#idsOf(git);
    if (want.length >= 40 && /^[0-9a-f]+$/.test(want) && commit !== want)
      throw this.#failed("ref_missing", `the host sent ${commit} instead`);
    const entries = await this.#entriesOf(git, commit, sparse);
    await this.#write(git, url, entries);
    this.done.push({ below, folder: git.tree, commit, tree, git, entries });
    if (source.submodules) await this.#takeSubmodules(git, url, below, commit, entries);
  }

  /** What the commit has of the wanted paths, within the limits. */
  async #entriesOf(
    git: Git,
    commit: string,
    sparse: readonly string[] | undefined,
  ): Promise<readonly TreeEntry[]> {
    const list = async (...how: readonly string[]) => {
      const args = ["ls-tree", "-r", "-z", "--full-tree", ...how, "--", commit, ...(sparse ?? [])];
      const most = Math.max(1_048_576, (this.left.files + 1) * maxListedBytes);
      return await treeEntries((await this.#succeed(git.run(args, "", most))).stdout);
    };
    if (sparse !== undefined) await this.#fetchBlobs(git, blobsIn(await list()));
    const entries = await list("--long");
    const blobs = blobsIn(entries);
    this.left.files -= blobs.length;
    this.left.bytes -= blobs.reduce((sum, { size }) => sum + size, 0);
    if (this.source.lfs !== false) this.left.bytes -= await this.#lfsBytes(git, blobs);
    if (this.left.files < 0 || this.left.bytes < 0) throw this.#failed("too_large", `${blobs.length} files`);
    return entries;
  }

  /** Contents that a fetch without any left out. */
  async #fetchBlobs(git: Git, blobs: readonly TreeEntry[]): Promise<void> {
    if (blobs.length > this.left.files) throw this.#failed("too_large", `${blobs.length} files`);
    const args = [
      ...[
        "-c",
        "fetch.negotiationAlgorithm=noop",
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-recurse-submodules",
      ],
      ...["--no-write-fetch-head", "--filter=blob:none", "--stdin", "origin"],
    ];
    const ids = [...new Set(blobs.map(({ id }) => id))];
    await this.#succeed(git.run(args, ids.map((id) => `${id}\n`).join("")));
  }

  /** Of what the pointers among these files stand for. */
  async #lfsBytes(git: Git, blobs: readonly TreeEntry[]): Promise<number> {
    const small = blobs.filter(({ size, mode }) => size < maxPointerBytes && mode !== linkMode);
    const ids = small.map(({ id }) => `${id}\n`).join("");
    const most = (small.length + 1) * (maxPointerBytes + 128);
    const { stdout } = await this.#succeed(git.run(["cat-file", "--batch"], ids, most));
    return await lfsBytesIn(stdout);
  }

  async #write(git: Git, url: string, entries: readonly TreeEntry[]): Promise<void> {
    const lines = blobsIn(entries).map(({ mode, id, path }) => `${mode} ${id}\t${path}\0`);
    const index = Buffer.from(lines.join(""), "latin1");
    await this.#succeed(git.run(["update-index", "-z", "--index-info"], index));
    await this.#succeed(
      git.run([...this.#lfsSettings(url), "checkout-index", "--all", "--force", "--quiet"]),
    );
  }

  /** The one filter that may run: the program that this sandbox has, with settings of ours before the repository's. */
  #lfsSettings(url: string): readonly string[] {
    if (this.source.lfs === false) return [];
    return lfsSettings(url);
  }

  async #takeSubmodules(
    git: Git,
    url: string,
    below: string,
    commit: string,
    entries: readonly TreeEntry[],
  ): Promise<void> {
    const links = new Map(entries.flatMap(({ type, path, id }) => (type === "commit" ? [[path, id]] : [])));
    if (links.size === 0) return;
    const args = ["config", "--blob", `${commit}:.gitmodules`, "--null", "--list"];
    const { stdout } = await this.#succeed(git.run(args, "", maxModulesBytes));
    for (const { path, url: given } of submodulesIn(stdout.toString("latin1"))) {
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

  async #idsOf(git: Git): Promise<{ readonly commit: string; readonly tree: string }> {
    const args = ["rev-parse", "refs/ambit/source^{commit}", "refs/ambit/source^{tree}"];
    const printed = (await this.#succeed(git.run(args))).stdout.toString();
    const [, commit, tree] =
      /^([0-9a-f]{40}|[0-9a-f]{64})\n([0-9a-f]{40}|[0-9a-f]{64})\n$/.exec(printed) ?? [];
    if (commit === undefined || tree === undefined) throw this.#failed("checkout_failed", "no commit");
    return { commit, tree };
  }

  async #succeed(run: Promise<GitRun>): Promise<GitRun> {
    let ended: GitRun;
    try {
      ended = await run;
    } catch (error) {
      if (error instanceof TooMuchOutput) throw this.#failed("too_large", "too many files");
      throw error;
    }
    if (ended.code === 0) return ended;
    const { reason } = gitFailureOf(ended.printed);
    throw this.#failed(reason, lastWords(ended.printed) || `git ended with ${ended.code}`);
  }

  #failed(reason: Parameters<typeof fixOf>[0], detail: string): Error {
    return sourceFailed(this.index, reason, `${fixOf(reason)} (${detail})`);
  }
}

const blobsIn = (entries: readonly TreeEntry[]) => entries.filter(({ type }) => type === "blob");
const withoutSlash = (path: string) => path.replace(/^(?:\.\/)+/, "").replace(/\/+$/, "");
