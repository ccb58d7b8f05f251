import type { Pushed, PushOptions } from "../outputs/pushing.js";
import type { PatchedFile } from "../patch/git-patch.js";
import { type Content, commitOf, contentsOf, sent } from "./commit.js";
import { lastWords } from "./failure.js";
import { isLfsPointer, lfsPointer, lfsSettings, maxPointerBytes } from "./lfs.js";
import { idsCommand, idsIn } from "./program/ids.js";
import type { GitCommand } from "./program/script.js";
import { failed } from "./push-failure.js";
import { commitIdOf, PushedRepository } from "./pushed-repository.js";

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
export async function pushChanges(given: PushOptions): Promise<Pushed | undefined> {
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

/** Without files that were there when the run began and aren't in the base: earlier runs left them out too. */
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
  // Those of a later run were filtered by what the base has.
  if (isContinued) return;
  const taken = new Set(listed.split("\0"));
  const kept = changes.find((change) => change.after === undefined && !taken.has(change.path));
  if (kept !== undefined)
    throw failed("push_failed", `'${lastWords(kept.path)}' is a submodule's, and the run deleted it`);
}

/** Makes the commit, and keeps it as a bundle. */
async function committed(
  repository: PushedRepository,
  contents: readonly Content[],
  options: PushOptions,
): Promise<Pick<Pushed, "commit" | "bundle">> {
  const { base, sign, keep } = options;
  const asked = idsCommand(resultRef);
  const replaced = replacing(options);
  const making = [
    importing(resultRef, contents, options),
    asked,
    // Git checks no names while it imports them, but refuses those that some file system takes for `.git` in an index.
    { args: ["read-tree", resultRef] },
    replaced,
  ];
  let facts: Pushed["bundle"] | undefined;
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
  const ids = idsIn(ended.outputs.get(asked));
  if (ids === undefined) throw failed("push_failed", "git made no commit");
  let { commit } = ids;
  if (sign !== undefined) {
    // Of what the sandbox says, only the tree's id is signed: the rest is the runner's own.
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

/** Before the commit that names them. */
async function uploadToLfs(
  repository: PushedRepository,
  contents: readonly Content[],
  { url, spool }: PushOptions,
): Promise<void> {
  const settings = lfsSettings(url);
  const given = new Map<string, Content>();
  for (const content of contents)
    if (content.pointer !== undefined && content.after !== undefined)
      given.set(content.after.sha256, content);
  for (const { after, pointer } of given.values()) {
    if (after === undefined) continue;
    const cleaning = { args: [...settings, "lfs", "clean"], input: spool.read(after) };
    const { stdout } = await repository.run([cleaning]);
    if (stdout.toString() !== pointer) throw failed("push_failed", "git LFS made another pointer");
  }
  const ids = [...given.keys()];
  for (let at = 0; at < ids.length; at += lfsBatch) {
    const args = [...settings, "lfs", "push", "--object-id", "origin", ...ids.slice(at, at + lfsBatch)];
    await repository.run([{ args, reachesHost: true }]);
  }
}
