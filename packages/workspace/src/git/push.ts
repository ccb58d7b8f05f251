import { createHash } from "node:crypto";
import type { GitReceipt, OutputsRequest } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import type { PatchedFile } from "../patch/git-patch.js";
import type { Spool } from "../spool.js";
import { failed, lastWords, moved, requireSuccess } from "./failure.js";
import { Git, type GitCommand, type GitRun, idsCommand, idsIn, type TakeLast } from "./git.js";
import { isLfsPointer, lfsPointer, lfsSettings, maxPointerBytes } from "./lfs.js";
import type { Sign } from "./signing.js";

export interface PushOptions {
  readonly output: NonNullable<OutputsRequest["git"]>;
  readonly url: string;
  /** The commit that the workspace began with. */
  readonly base: string;
  /** Whether an earlier run of the session left files that may not be in it, such as ignored ones. */
  readonly isContinued: boolean;
  /** At least one change, with paths as they are in the repository. */
  readonly changes: readonly PatchedFile[];
  readonly spool: Spool;
  /** A sandbox for git alone. */
  readonly sandbox: Sandbox;
  readonly maxFileBytes: number;
  /** When the commit is made, in milliseconds since 1970. */
  readonly at: number;
  /** Undefined: it isn't signed. */
  readonly sign: Sign | undefined;
  /** Keeps the commit as a bundle of git. */
  readonly keep: (bundle: AsyncIterable<Uint8Array>) => Promise<GitReceipt["bundle"]>;
  readonly signal: AbortSignal;
}

/** A file as git is to have it. */
export interface Content {
  readonly path: string;
  /** Undefined for one that is deleted. */
  readonly after: PatchedFile["after"];
  /** The pointer that stands for its content, which git LFS has. */
  readonly pointer?: string;
  readonly bytes: () => AsyncIterable<Uint8Array>;
}

function contentsOf(changes: readonly PatchedFile[], spool: Spool): readonly Content[] {
  return changes.map(({ path, after }) => ({
    path,
    after,
    bytes: async function* () {
      if (after !== undefined) yield* spool.read(after);
    },
  }));
}

/** A commit as `git fast-import` reads it. */
export async function* sent(
  ref: string,
  contents: readonly Content[],
  options: PushOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const text = Buffer.from(options.output.message);
  yield Buffer.from(`commit ${ref}\n${peopleOf(options)}data ${text.length}\n`);
  yield text;
  yield Buffer.from(`\nfrom ${options.base}\n`);
  // A file may become a folder: what is gone goes first.
  for (const { path, after } of contents) if (after === undefined) yield Buffer.from(`D ${quoted(path)}\n`);
  for (const { path, after, pointer, bytes } of contents) {
    if (after === undefined) continue;
    const mode = after.executable ? "100755" : "100644";
    const size = pointer === undefined ? after.size : Buffer.byteLength(pointer);
    yield Buffer.from(`M ${mode} inline ${quoted(path)}\ndata ${size}\n`);
    if (pointer === undefined) yield* bytes();
    else yield Buffer.from(pointer);
    yield Buffer.from("\n");
  }
  yield Buffer.from("done\n");
}

/** The object of a signed commit (gitformat-signature). */
export function commitOf(tree: string, options: PushOptions): Buffer {
  const { base, output, sign } = options;
  const head = `tree ${tree}\nparent ${base}\n${peopleOf(options)}`;
  const body = `\n${output.message}`;
  if (sign === undefined) return Buffer.from(head + body);
  const signature = sign(Buffer.from(head + body)).trimEnd();
  return Buffer.from(`${head}gpgsig ${signature.replaceAll("\n", "\n ")}\n${body}`);
}

function peopleOf({ output: { author }, at }: PushOptions): string {
  const person = `${author.name} <${author.email}> ${Math.floor(at / 1_000)} +0000`;
  return `author ${person}\ncommitter ${person}\n`;
}

/** Control characters and backslashes never come here. */
const quoted = (path: string) => `"${path.replaceAll('"', '\\"')}"`;

/** The repository where a commit is made. The base is fetched by the process of the first commands that are run in it. */
class PushedRepository {
  readonly branch: string;
  readonly #git: Git;
  readonly #base: string;
  readonly #heads: GitCommand;
  #opening: readonly GitCommand[];
  #found: string | undefined;

  constructor({ output, url, base, sandbox, signal, maxFileBytes }: PushOptions) {
    const isPlain = new URL(url).protocol === "http:";
    this.#git = new Git({ sandbox, signal, maxFileBytes, isPlain }, "pushed");
    this.#base = base;
    this.branch = `refs/heads/${output.branch}`;
    this.#heads = { args: ["ls-remote", "origin", this.branch], reachesHost: true };
    const fetching = ["fetch", "--quiet", "--no-tags", "--depth=1", "--refmap="];
    this.#opening = [
      { args: ["init", "--quiet", "--template="] },
      { args: ["config", "remote.origin.url", url] },
      ...(output.push === "branch" ? [this.#heads] : []),
      { args: [...fetching, "origin", `+${base}:refs/ambit/base`], reachesHost: true },
    ];
  }

  /** The commit that the host's branch has; undefined for a new branch. */
  get found(): string | undefined {
    return this.#found;
  }

  /**
   * Runs commands in one process.
   * @param take as for `Git.run`
   * @throws OutputsFailed where one fails, or the branch is neither new nor the base; the signal's reason
   */
  async run(commands: readonly GitCommand[], take?: TakeLast): Promise<GitRun> {
    const opening = this.#opening;
    this.#opening = [];
    const ended = await this.#git.run([...opening, ...commands], take);
    const head = ended.outputs.get(this.#heads)?.toString();
    if (head !== undefined) this.#found = /^([0-9a-f]{40,64})\t/.exec(head)?.[1];
    // This comes before the failure that it causes.
    if (this.#found !== undefined && this.#found !== this.#base) throw moved(`it is at ${this.#found}`);
    requireSuccess(ended);
    return ended;
  }
}

/** The id that git gives to a commit's object. Pure. @param format an id of the same repository */
function commitIdOf(object: Buffer, format: string): string {
  const hash = createHash(format.length === 40 ? "sha1" : "sha256");
  return hash.update(`commit ${object.length}\0`).update(object).digest("hex");
}

/** Contents that one command of git LFS uploads. */
const lfsBatch = 200;

/** The commit, before it is signed. */
const resultRef = "refs/ambit/result";
/** A commit of the attributes that changed. */
const attributesRef = "refs/ambit/attributes";

/**
 * Makes a commit of the changes on top of the base, keeps it as a bundle, and pushes it. Git gets contents, never a folder of
 * the agent's. The branch must be new, or still be the base: nothing is overwritten.
 *
 * @returns undefined where nothing of the repository changed
 * @throws OutputsFailed; the signal's reason
 */
export async function pushChanges(given: PushOptions): Promise<GitReceipt | undefined> {
  const { output, url, base, sign } = given;
  const isPushed = output.push === "branch";
  const repository = new PushedRepository(given);
  const changes = given.isContinued ? await tracked(repository, given) : given.changes;
  if (changes.length === 0) return undefined;
  const options = { ...given, changes };
  const contents = await withPointers(repository, options);
  const { commit, bundle } = await committed(repository, contents, options);
  if (isPushed) {
    await uploadToLfs(repository, contents, options);
    const { branch, found } = repository;
    const args = [
      ...["push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no"],
      // It is compared with what the server has: its child replaces the base, or a new branch nothing.
      `--force-with-lease=${branch}:${found ?? ""}`,
      ...["origin", `${commit}:${branch}`],
    ];
    await repository.run([{ args, reachesHost: true }]);
  }
  return {
    url,
    branch: output.branch,
    commit,
    base,
    pushed: isPushed,
    signed: sign !== undefined,
    bundle,
  };
}

/** Leaves out files that were there when the run began and aren't in the base: earlier runs left them out too. */
async function tracked(
  repository: PushedRepository,
  { base, changes }: PushOptions,
): Promise<PushOptions["changes"]> {
  const input = changes.map(({ path }) => `${base}:${path}\n`).join("");
  const maxOutput = 2 * Buffer.byteLength(input) + 1_048_576;
  const args = ["cat-file", "--batch-check=%(objecttype)"];
  const { stdout } = await repository.run([{ args, input, maxOutput }]);
  const types = stdout.toString().split("\n");
  return changes.filter(({ before }, at) => before === undefined || types[at] === "blob");
}

/** Makes a commit of contents on top of the base. */
function importing(ref: string, contents: readonly Content[], options: PushOptions): GitCommand {
  const args = ["fast-import", "--quiet", "--done", "--date-format=raw"];
  return { args, input: sent(ref, contents, options) };
}

/** Lists what the commit replaces by something of another kind, or takes away. */
function replacing({ base, changes }: PushOptions): GitCommand {
  const how = ["-r", "-z", "--no-renames", "--diff-filter=DT"];
  const maxOutput = changes.reduce((sum, { path }) => sum + Buffer.byteLength(path) + 256, 1_048_576);
  return { args: ["diff-tree", ...how, base, resultRef], maxOutput };
}

/**
 * Its files are another repository's: only what changed of them is known here.
 *
 * @param replaced what `replacing` printed. Undefined where that wasn't among the commands.
 * @throws OutputsFailed
 */
function requireNoSubmodules({ changes, isContinued }: PushOptions, replaced: Buffer | undefined): void {
  if (replaced === undefined) return;
  const listed = replaced.toString();
  const [, path] = /:160000 [^\0]*\0([^\0]*)\0/.exec(listed) ?? [];
  if (path !== undefined)
    throw failed("push_failed", `'${lastWords(path)}' is a submodule, and the run changed a file in it`);
  // The changes of a later run were filtered by what the base has.
  if (isContinued) return;
  const taken = new Set(listed.split("\0"));
  const keptFile = changes.find((change) => change.after === undefined && !taken.has(change.path));
  if (keptFile !== undefined)
    throw failed("push_failed", `'${lastWords(keptFile.path)}' is a submodule's, and the run deleted it`);
}

/** Makes the commit, and keeps it as a bundle. */
async function committed(
  repository: PushedRepository,
  contents: readonly Content[],
  options: PushOptions,
): Promise<Pick<GitReceipt, "commit" | "bundle">> {
  const { base, sign, keep } = options;
  const readingIds = idsCommand(resultRef);
  const replaced = replacing(options);
  const making = [
    importing(resultRef, contents, options),
    readingIds,
    // Git checks no names while it imports them, but refuses those that some file system takes for `.git` in an index.
    { args: ["read-tree", resultRef] },
    replaced,
  ];
  let facts: GitReceipt["bundle"] | undefined;
  const keeping = async (commands: readonly GitCommand[], id: string) => {
    const naming = { args: ["update-ref", repository.branch, id] };
    const bundling = { args: ["bundle", "create", "--quiet", "-", repository.branch, `^${base}`] };
    return await repository.run([...commands, naming, bundling], async (bytes, outputs) => {
      requireNoSubmodules(options, outputs.get(replaced));
      facts = await keep(bytes);
    });
  };
  const ended = await (sign === undefined ? keeping(making, resultRef) : repository.run(making));
  requireNoSubmodules(options, ended.outputs.get(replaced));
  const ids = idsIn(ended.outputs.get(readingIds));
  if (ids === undefined) throw failed("push_failed", "git made no commit");
  let { commit } = ids;
  if (sign !== undefined) {
    // The signature covers the runner's own text, and of the sandbox's only the tree's id.
    const input = commitOf(ids.tree, options);
    commit = commitIdOf(input, ids.tree);
    await keeping([{ args: ["hash-object", "-t", "commit", "-w", "--stdin"], input }], commit);
  }
  if (facts === undefined) throw failed("push_failed", "git made no bundle");
  return { commit, bundle: facts };
}

/** The changes as git is to have them: a pointer in place of each content that the repository gives to git LFS. */
async function withPointers(repository: PushedRepository, options: PushOptions): Promise<readonly Content[]> {
  const { base, changes, spool } = options;
  const contents = contentsOf(changes, spool);
  const attributes = changes.filter(({ path }) => /(?:^|\/)\.gitattributes$/.test(path));
  if (attributes.length > 0)
    await repository.run([importing(attributesRef, contentsOf(attributes, spool), options)]);
  const paths = changes.flatMap(({ path, after }) => (after === undefined ? [] : [path]));
  const input = paths.map((path) => `${path}\0`).join("");
  const maxOutput = 2 * Buffer.byteLength(input) + 1_048_576;
  const args = ["check-attr", "--cached", "-z", "--stdin", "filter"];
  const { stdout } = await repository.run([
    { args: ["read-tree", attributes.length > 0 ? attributesRef : base] },
    { args, input, maxOutput },
  ]);
  const fields = stdout.toString().split("\0");
  const inLfs = new Set(fields.filter((_path, at) => at % 3 === 0 && fields[at + 2] === "lfs"));
  if (inLfs.size === 0) return contents;
  const pointed: Content[] = [];
  for (const content of contents) {
    const { path, after } = content;
    const isKept =
      after === undefined || !inLfs.has(path) || after.size === 0 || (await isPointer(after, spool));
    pointed.push(isKept ? content : { ...content, pointer: lfsPointer(after) });
  }
  return pointed;
}

async function isPointer(
  after: NonNullable<PatchedFile["after"]>,
  spool: PushOptions["spool"],
): Promise<boolean> {
  return after.size < maxPointerBytes && isLfsPointer((await spool.whole(after)).toString("latin1"));
}

/** Uploads contents, before the commit that names them is pushed. */
async function uploadToLfs(
  repository: PushedRepository,
  contents: readonly Content[],
  { url, spool }: PushOptions,
): Promise<void> {
  const settings = lfsSettings(url);
  const byDigest = new Map<string, Content>();
  for (const content of contents)
    if (content.pointer !== undefined && content.after !== undefined)
      byDigest.set(content.after.sha256, content);
  for (const { after, pointer } of byDigest.values()) {
    if (after === undefined) continue;
    const cleaning = { args: [...settings, "lfs", "clean"], input: spool.read(after) };
    const { stdout } = await repository.run([cleaning]);
    if (stdout.toString() !== pointer) throw failed("push_failed", "git LFS made another pointer");
  }
  const ids = [...byDigest.keys()];
  for (let at = 0; at < ids.length; at += lfsBatch) {
    const args = [...settings, "lfs", "push", "--object-id", "origin", ...ids.slice(at, at + lfsBatch)];
    await repository.run([{ args, reachesHost: true }]);
  }
}
