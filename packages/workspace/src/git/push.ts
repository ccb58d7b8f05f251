import type { Pushed, PushOptions } from "../outputs/pushing.js";
import type { PatchedFile } from "../patch/git-patch.js";
import { type Content, commitOf, contentsOf, sent } from "./commit.js";
import { isLfsPointer, lfsPointer, lfsSettings, maxPointerBytes } from "./lfs.js";
import { Git } from "./program.js";
import { failed, moved, succeed } from "./push-failure.js";

/** Contents that one command of git LFS uploads. */
const lfsBatch = 200;

/**
 * Makes a commit of the changes on top of the base, keeps it as a bundle, and pushes it. Git gets contents, never a folder of
 * the agent's. The branch must be new, or still be the base: nothing is overwritten.
 *
 * @returns undefined where nothing of the repository changed
 * @throws OutputsFailed; the signal's reason
 */
export async function pushChanges(given: PushOptions): Promise<Pushed | undefined> {
  const { output, url, base, sandbox, signal, maxFileBytes, sign } = given;
  const isPlain = new URL(url).protocol === "http:";
  const git = new Git({ sandbox, signal, maxFileBytes, isPlain }, "pushed");
  const branch = `refs/heads/${output.branch}`;
  const isPushed = output.push === "branch";
  await succeed(git.run(["init", "--quiet", "--template="]));
  await succeed(git.run(["config", "remote.origin.url", url]));
  const found = isPushed ? await headOf(git, branch) : undefined;
  if (found !== undefined && found !== base) throw moved(`it is at ${found}`);
  const fetching = ["fetch", "--quiet", "--no-tags", "--depth=1", "--refmap="];
  await succeed(git.run([...fetching, "origin", `+${base}:refs/ambit/base`]));
  const changes = given.isContinued ? await tracked(git, given) : given.changes;
  if (changes.length === 0) return undefined;
  const options = { ...given, changes };
  const contents = await withPointers(git, options);
  const unsigned = await imported(git, "refs/ambit/result", contents, options);
  // Git checks no names while it imports them, but refuses those that some file system takes for `.git` in an index.
  await succeed(git.run(["read-tree", unsigned]));
  const commit = sign === undefined ? unsigned : await signed(git, unsigned, options);
  await succeed(git.run(["update-ref", branch, commit]));
  const bundle = await kept(git, branch, options);
  if (isPushed) {
    await uploadToLfs(git, contents, options);
    await succeed(
      git.run([
        ...["push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no"],
        // It is compared with what the server has: its child replaces the base, or a new branch nothing.
        `--force-with-lease=${branch}:${found ?? ""}`,
        ...["origin", `${commit}:${branch}`],
      ]),
    );
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
async function tracked(git: Git, { base, changes }: PushOptions): Promise<PushOptions["changes"]> {
  const asked = changes.map(({ path }) => `${base}:${path}\n`).join("");
  const most = 2 * Buffer.byteLength(asked) + 1_048_576;
  const { stdout } = await succeed(git.run(["cat-file", "--batch-check=%(objecttype)"], asked, most));
  const types = stdout.toString().split("\n");
  return changes.filter(({ before }, at) => before === undefined || types[at] === "blob");
}

async function headOf(git: Git, branch: string): Promise<string | undefined> {
  const head = (await succeed(git.run(["ls-remote", "origin", branch]))).stdout.toString();
  return /^([0-9a-f]{40,64})\t/.exec(head)?.[1];
}

/** @returns the commit's id */
async function imported(
  git: Git,
  ref: string,
  contents: readonly Content[],
  options: PushOptions,
): Promise<string> {
  const importing = ["fast-import", "--quiet", "--done", "--date-format=raw"];
  await succeed(git.run(importing, sent(ref, contents, options)));
  return await idOf(git, `${ref}^{commit}`);
}

async function idOf(git: Git, name: string): Promise<string> {
  const { stdout } = await succeed(git.run(["rev-parse", "--verify", name]));
  const id = stdout.toString().trim();
  if (!/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(id)) throw failed("push_failed", "git made no commit");
  return id;
}

/** The commit again, with a signature. Of what the sandbox says, only the tree's id is signed: the rest is the runner's own. */
async function signed(git: Git, unsigned: string, options: PushOptions): Promise<string> {
  const tree = await idOf(git, `${unsigned}^{tree}`);
  const { stdout } = await succeed(
    git.run(["hash-object", "-t", "commit", "-w", "--stdin"], commitOf(tree, options)),
  );
  const id = stdout.toString().trim();
  return await idOf(git, `${id}^{commit}`);
}

async function kept(git: Git, branch: string, { base, keep }: PushOptions): Promise<Pushed["bundle"]> {
  let facts: Pushed["bundle"] | undefined;
  const bundled = git.pass(["bundle", "create", "--quiet", "-", branch, `^${base}`], "", async (bytes) => {
    facts = await keep(bytes);
  });
  await succeed(bundled);
  if (facts === undefined) throw failed("push_failed", "git made no bundle");
  return facts;
}

/** The changes as git is to have them: a pointer in place of each content that the repository gives to git LFS. */
async function withPointers(git: Git, options: PushOptions): Promise<readonly Content[]> {
  const { base, changes, spool } = options;
  const contents = contentsOf(changes, spool);
  const attributes = changes.filter(({ path }) => /(?:^|\/)\.gitattributes$/.test(path));
  const tree =
    attributes.length === 0
      ? base
      : await imported(git, "refs/ambit/attributes", contentsOf(attributes, spool), options);
  await succeed(git.run(["read-tree", tree]));
  const paths = changes.flatMap(({ path, after }) => (after === undefined ? [] : [path]));
  const asked = paths.map((path) => `${path}\0`).join("");
  const most = 2 * Buffer.byteLength(asked) + 1_048_576;
  const checking = ["check-attr", "--cached", "-z", "--stdin", "filter"];
  const { stdout } = await succeed(git.run(checking, asked, most));
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
  git: Git,
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
    const { stdout } = await succeed(git.run([...settings, "lfs", "clean"], spool.read(after)));
    if (stdout.toString() !== pointer) throw failed("push_failed", "git LFS made another pointer");
  }
  const ids = [...given.keys()];
  for (let at = 0; at < ids.length; at += lfsBatch)
    await succeed(
      git.run([...settings, "lfs", "push", "--object-id", "origin", ...ids.slice(at, at + lfsBatch)]),
    );
}
